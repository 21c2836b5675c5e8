"""Programs that differ in names only become equal: the cache key hashes the text of the canonical program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tc.base.frozen import frozen
from tc.language.algebra.extents import rename_extent
from tc.language.algebra.rewriting import map_statement
from tc.language.program.program import (
    Expression,
    IteratorReference,
    Program,
    Read,
    ScalarReference,
    SizeReference,
    Statement,
    rebuild,
)
from tc.language.text.print_program import program_text


def canonical(program: Program) -> Program:
    """The program with its definition, sizes, scalars, tensors and iterators renamed by position.

    Origins stay, so that messages about the canonical program still point into the text.
    """
    names = _Names(
        sizes={size: f"n{number}" for number, size in enumerate(program.sizes)},
        scalars={scalar.name: f"s{number}" for number, scalar in enumerate(program.scalars)},
        tensors={tensor.name: f"t{number}" for number, tensor in enumerate(program.tensors)},
    )
    arguments = {**names.scalars, **names.tensors}
    return Program(
        name="f",
        sizes=tuple(names.sizes.values()),
        scalars=tuple(replace(scalar, name=names.scalars[scalar.name]) for scalar in program.scalars),
        tensors=tuple(
            replace(
                tensor,
                name=names.tensors[tensor.name],
                shape=tuple(names.rename(extent, {}) for extent in tensor.shape),
            )
            for tensor in program.tensors
        ),
        arguments=tuple(arguments[name] for name in program.arguments),
        results=tuple(names.tensors[name] for name in program.results),
        statements=tuple(names.statement(statement, number) for number, statement in enumerate(program.statements)),
        preconditions=tuple(replace(p, condition=names.rename(p.condition, {})) for p in program.preconditions),
        source=program.source,
    )


def canonical_text(program: Program) -> str:
    """The text of the canonical program: equal for programs that differ in names only, and for no others."""
    return program_text(canonical(program))


@frozen
class _Names:
    sizes: Mapping[str, str]
    scalars: Mapping[str, str]
    tensors: Mapping[str, str]

    def statement(self, statement: Statement, number: int) -> Statement:
        iterators = {iterator.name: f"i{position}" for position, iterator in enumerate(statement.iterators)}
        renamed = map_statement(statement, lambda expression: self.rename(expression, iterators))
        return replace(
            renamed,
            name=f"S{number}",
            target=self.tensors[statement.target],
            iterators=tuple(replace(iterator, name=iterators[iterator.name]) for iterator in renamed.iterators),
        )

    def rename(self, expression: Expression, iterators: Mapping[str, str]) -> Expression:
        renamed = rebuild(expression, lambda child: self.rename(child, iterators))
        match renamed:
            case Read(tensor):
                return replace(renamed, tensor=self.tensors[tensor])
            case IteratorReference(name):
                return IteratorReference(iterators[name])
            case SizeReference(name):
                return rename_extent(renamed, self.tensors) or SizeReference(self.sizes[name])
            case ScalarReference(name, type):
                return ScalarReference(self.scalars[name], type)
            case _:
                return renamed
