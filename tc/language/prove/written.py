"""Which statements give a value of a tensor its elements, and which only update them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tc.language.program.program import (
    Expression,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Statement,
    Tensor,
    iterators_in,
    walk,
)
from tc.language.program.written_elements import initial_conditions, is_scatter, over_elements, written_iterators


@dataclass(slots=True)
class WrittenValue:
    """One value of a tensor.  ``initial``: the statements that give it elements, by ``=`` or ``op=!``.

    ``complete``: they must give it all elements; the value of an in-out result starts with what came in.  A temporary
    that is written in a block has those that are read (``tc.language.prove.written_before``).
    """

    tensor: Tensor
    complete: bool
    initial: list[Statement] = field(default_factory=list)


def reads_target(statement: Statement) -> bool:
    """Whether a statement updates its target in place; in blocks, other elements may be those of other steps."""
    own = (e for e in walk(statement.value) if isinstance(e, Read) and e.tensor == statement.target)
    return any(not statement.blocks or read.subscripts == statement.subscripts for read in own)


def is_single_valued(statement: Statement) -> bool:
    """Whether no two instances may write the same element: an assignment, or an update that reads its target."""
    return (statement.reduction is None and not is_scatter(statement)) or reads_target(statement)


def gives_elements(statement: Statement) -> bool:
    """Whether it gives elements their value, rather than updating those that there are."""
    return statement.initialize or not (
        statement.reduction is not None or reads_target(statement) or is_scatter(statement)
    )


def initialization(statement: Statement, shape: Sequence[Expression] | None = None) -> Statement:
    """The instances that give elements: of ``op=!`` those of the written iterators alone.

    With the ``shape`` of its target, also over the dimensions in which it scatters.
    """
    if not statement.initialize:
        return statement
    if shape is not None:
        return over_elements(statement, shape)
    return replace(statement, iterators=written_iterators(statement), conditions=initial_conditions(statement))


def written_values(program: Program) -> Sequence[WrittenValue]:
    """All values in order.

    A tensor holds one value, except that of an in-out result: there ``=`` or ``op=!`` after a read replaces the
    value that came in.
    """
    values: list[WrittenValue] = []
    current: dict[str, WrittenValue] = {}
    read: set[str] = set()
    tensors = {tensor.name: tensor for tensor in program.tensors}
    for statement in program.statements:
        tensor = tensors[statement.target]
        gives = gives_elements(statement)
        replaces = gives and tensor.role is Role.IN_OUT and tensor.name in read and not statement.blocks
        if tensor.name not in current or replaces:
            current[tensor.name] = WrittenValue(tensor, complete=tensor.role is not Role.IN_OUT or replaces)
            values.append(current[tensor.name])
        if gives:
            current[tensor.name].initial.append(statement)
            if statement.blocks and tensor.role is Role.TEMPORARY:
                current[tensor.name].complete = False
        read.update(name for name in _tensors_read(statement) if name != tensor.name)
        read.discard(tensor.name)
    return values


def read_since_written(statements: Iterable[Statement]) -> frozenset[str]:
    """The tensors that some statement reads after the last one that writes them."""
    read: set[str] = set()
    for statement in statements:
        read.update(_tensors_read(statement))
        read.discard(statement.target)
    return frozenset(read)


def _tensors_read(statement: Statement) -> Iterator[str]:
    return (e.tensor for x in (*statement.subscripts, statement.value) for e in walk(x) if isinstance(e, Read))


def writes_distinct_elements(statement: Statement) -> bool:
    """Whether every iterator is a subscript by itself, so that instances surely write different elements.

    Those of blocks need not be: steps may write one element again and again.
    """
    alone = {s.name for s in statement.subscripts if isinstance(s, IteratorReference)}
    return alone >= {iterator.name for iterator in statement.iterators[len(statement.blocks) :]}


def is_plainly_covered(value: WrittenValue) -> bool:
    """Whether one statement surely gives every element once: its subscripts are iterators over whole dimensions."""
    if len(value.initial) != 1:
        return False
    statement = initialization(value.initial[0], value.tensor.shape)
    ranges = {iterator.name: iterator for iterator in statement.iterators}
    names = [s.name for s in statement.subscripts if isinstance(s, IteratorReference)]
    if statement.conditions or len(names) < len(statement.subscripts) or len(set(names)) < len(ranges):
        return False
    if iterators_in(e for iterator in statement.iterators for e in (iterator.begin, iterator.end)):
        return False
    return len(set(names)) == len(names) and all(
        ranges[name].begin == Literal(0, extent.type) and _same_end(ranges[name].end, extent)
        for name, extent in zip(names, value.tensor.shape, strict=True)
    )


def _same_end(end: object, extent: object) -> bool:
    if end == extent:
        return True
    # A range that ends below 0 is empty, and so is the dimension.
    return isinstance(end, Literal) and isinstance(extent, Literal) and end.value <= 0 == extent.value
