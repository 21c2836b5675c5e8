"""Results that come in with a value, as arguments: a derivative does not write what it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tc.base.frozen import frozen
from tc.gradient.versions import over_tensor
from tc.language.algebra.rewriting import fresh_name, map_statement, rename
from tc.language.program.program import (
    DerivedOrigin,
    Expression,
    IteratorReference,
    Program,
    Read,
    Role,
    Statement,
    Tensor,
)
from tc.language.prove.written import WrittenValue, written_values


@frozen
class Known:
    """``program``: without results that come in.  ``names``: in the definition, of the results that have another one.

    ``arguments``: the tensors that hold what came in.
    """

    program: Program
    names: Mapping[str, str]
    arguments: tuple[str, ...]


def with_known_values(program: Program) -> Known:
    """The program in which each result that comes in is an argument, and its values are tensors of their own."""
    incoming = [tensor for tensor in program.tensors if tensor.role is Role.IN_OUT]
    if not incoming:
        return Known(program, {}, ())
    taken = {*program.sizes, *(s.name for s in program.scalars), *(t.name for t in program.tensors)}
    taken |= {iterator.name for statement in program.statements for iterator in statement.iterators}
    given = {tensor.name: replace(tensor, role=Role.INPUT) for tensor in incoming}
    tensors = [given.get(tensor.name, tensor) for tensor in program.tensors]
    replaced = _replacing(program)
    current: dict[str, str] = {}
    statements: list[Statement] = []

    def value_of(tensor: Tensor) -> Tensor:
        own = replace(tensor, name=fresh_name(f"{tensor.name}_next", taken), role=Role.TEMPORARY)
        taken.add(own.name)
        tensors.append(own)
        current[tensor.name] = own.name
        return own

    for tensor in incoming:
        own = value_of(tensor)
        iterators = over_tensor(own, taken)
        subscripts = tuple(IteratorReference(iterator.name) for iterator in iterators)
        origin = DerivedOrigin(f"the value that {tensor.name} comes in with", tensor.origin)
        value = Read(tensor.name, subscripts, tensor.type)
        statements.append(Statement("", iterators, (), own.name, subscripts, None, False, value, (), origin))
    for statement in program.statements:
        renamed = map_statement(statement, _renaming(dict(current)))
        if statement.name in replaced:
            value_of(program.tensor(statement.target))
        statements.append(replace(renamed, target=current.get(statement.target, statement.target)))
    results = tuple(current.get(name, name) for name in program.results)
    changed = replace(
        program,
        tensors=tuple(replace(t, role=Role.OUTPUT) if t.name in results else t for t in tensors),
        arguments=(*program.arguments, *given),
        results=results,
        statements=tuple(statements),
    )
    return Known(changed, {new: old for old, new in current.items()}, tuple(given))


def _renaming(names: Mapping[str, str]) -> Callable[[Expression], Expression]:
    return lambda expression: rename(expression, names, {})


def _replacing(program: Program) -> frozenset[str]:
    """The statements that begin another value of a result than the one that came in."""
    values: dict[str, list[WrittenValue]] = {}
    for value in written_values(program):
        values.setdefault(value.tensor.name, []).append(value)
    return frozenset(
        value.initial[0].name
        for own in values.values()
        for value in own
        if value.tensor.role is Role.IN_OUT and value.complete and value.initial
    )
