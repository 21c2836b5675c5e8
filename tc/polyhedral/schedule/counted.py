"""Indices that are declared distinct: how often each is one is counted, for the statement to check.

``T(I(b), d) = v(b, d) where distinct I`` becomes ``n(I(b)) +=! 1`` and the statement, which notes a fault where
``n(I(b))`` is not 1.  What it writes does not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tc.base.types import ScalarType
from tc.language.algebra.rewriting import fresh_name
from tc.language.program.program import (
    INDEX_TYPE,
    DerivedOrigin,
    Literal,
    Program,
    Read,
    Reduction,
    Role,
    Statement,
    Tensor,
    iterators_in,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.language.program.written_elements import index_read


def with_counts(specialization: Specialization) -> Specialization:
    """The program with statements that count, for each that has distinct indices; itself, if none has."""
    program = specialization.program
    if not any(statement.distinct for statement in program.statements):
        return specialization
    counting = _Counting(specialization)
    statements = tuple(part for statement in program.statements for part in counting.parts(statement))
    program = replace(program, tensors=tuple(counting.tensors), statements=statements)
    return replace(specialization, program=program, layouts=counting.layouts)


class _Counting:
    """Collects the tensors of the counts."""

    def __init__(self, specialization: Specialization) -> None:
        self.program: Program = specialization.program
        self.tensors = list(specialization.program.tensors)
        self.layouts = dict(specialization.layouts)

    def parts(self, statement: Statement) -> Iterator[Statement]:
        """What counts, and the statement that reads the counts."""
        counts: list[Read] = []
        for dimension, subscript in enumerate(statement.subscripts):
            read = index_read(subscript)
            if read in statement.distinct and read is not None:
                extent = self.layouts[statement.target].shape[dimension]
                tensor = self.tensor(statement, extent)
                counts.append(Read(tensor.name, (subscript,), tensor.type))
                yield self.count(statement, read, counts[-1])
        yield replace(statement, counts=tuple(counts))

    def count(self, statement: Statement, read: Read, count: Read) -> Statement:
        """``n(I(b)) +=! 1`` for all elements that are read."""
        kept = iterators_in((read,)) | {iterator.name for iterator in statement.sequence}
        return replace(
            statement,
            name=fresh_name(f"{statement.name}_count", {own.name for own in self.program.statements}) + count.tensor,
            iterators=tuple(iterator for iterator in statement.iterators if iterator.name in kept),
            conditions=tuple(own for own in statement.conditions if iterators_in((own,)) <= kept),
            target=count.tensor,
            subscripts=count.subscripts,
            reduction=Reduction.ADD,
            initialize=True,
            value=Literal(1, count.type),
            required=(),
            distinct=(),
            origin=DerivedOrigin("how often an index is one that is declared distinct", statement.origin),
        )

    def tensor(self, statement: Statement, extent: int) -> Tensor:
        """A new temporary for counts."""
        name = fresh_name(f"{statement.target}_times", {tensor.name for tensor in self.tensors})
        origin = DerivedOrigin("counts", statement.origin)
        tensor = Tensor(name, ScalarType.INT32, (Literal(extent, INDEX_TYPE),), Role.TEMPORARY, origin)
        self.tensors.append(tensor)
        self.layouts[name] = Layout(ScalarType.INT32, (extent,), contiguous_strides((extent,)))
        return tensor
