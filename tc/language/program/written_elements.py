"""Which elements a statement writes: those of its left-hand side, also where data choose them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tc.language.program.program import (
    INDEX_TYPE,
    Cast,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Read,
    Statement,
    iterators_in,
    walk,
)


def scatters(subscript: Expression) -> bool:
    """Whether a subscript of a left-hand side depends on data."""
    return not isinstance(subscript, IteratorReference) and any(isinstance(part, Read) for part in walk(subscript))


def index_read(subscript: Expression) -> Read | None:
    """The element that a subscript is; None if it is computed."""
    while isinstance(subscript, Cast):
        subscript = subscript.operand
    return subscript if isinstance(subscript, Read) else None


def is_scatter(statement: Statement) -> bool:
    """Whether data say which elements a statement writes."""
    return any(map(scatters, statement.subscripts))


def chosen_by(subscripts: Iterable[Expression]) -> frozenset[str]:
    """The iterators that choose the element of a left-hand side by themselves: not through data."""
    return iterators_in(subscript for subscript in subscripts if not scatters(subscript))


def written_iterators(statement: Statement) -> tuple[IterationVariable, ...]:
    """The iterators of the blocks, and of the left-hand side but for those in reads; the others are reduced."""
    names = chosen_by(statement.subscripts) | {iterator.name for iterator in statement.sequence}
    return tuple(iterator for iterator in statement.iterators if iterator.name in names)


def initial_conditions(statement: Statement) -> tuple[Expression, ...]:
    """The conditions on written iterators alone.

    ``+=!`` sets every element whose written iterators lie in their ranges and fulfil these conditions to the neutral
    element, also where the conditions on reduced iterators leave nothing to add.
    """
    names = {iterator.name for iterator in written_iterators(statement)}
    return tuple(condition for condition in statement.conditions if iterators_in((condition,)) <= names)


def over_elements(statement: Statement, shape: Sequence[Expression]) -> Statement:
    """The statement over all elements that it may write: what ``+=!`` initializes.

    It has its written iterators and, in every dimension of its target in which it scatters, a new one over the whole
    dimension.  ``shape``: of the target.
    """
    kept = list(written_iterators(statement))
    plain = not iterators_in(bound for iterator in kept for bound in (iterator.begin, iterator.end))
    taken = {iterator.name for iterator in statement.iterators}
    subscripts = list(statement.subscripts)
    for dimension, (subscript, extent) in enumerate(zip(subscripts, shape, strict=True)):
        if scatters(subscript):
            name = f"e{dimension}"
            while name in taken:
                name = f"e{name}"
            kept.append(IterationVariable(name, Literal(0, INDEX_TYPE), extent))
            subscripts[dimension] = IteratorReference(name)
    if plain:
        # In the order of dimensions, which is that of memory.
        first = dict(reversed([(name, d) for d, own in enumerate(subscripts) for name in iterators_in((own,))]))
        steps, rest = kept[: len(statement.blocks)], kept[len(statement.blocks) :]
        kept = [*steps, *sorted(rest, key=lambda iterator: first.get(iterator.name, -1))]
    return replace(
        statement, iterators=tuple(kept), conditions=initial_conditions(statement), subscripts=tuple(subscripts)
    )
