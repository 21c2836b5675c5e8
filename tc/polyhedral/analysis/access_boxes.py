"""Bounding boxes of the accesses of a part of a loop tree, with offsets that depend on the loops around it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, assert_never

from tc.base.frozen import frozen
from tc.language.program.program import Expression
from tc.polyhedral.analysis.offsets import Arguments, LinearForm, index_form, subscript_form
from tc.polyhedral.analysis.ranges import Ranges, iterator_range, range_of
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Guard,
    IndexVariable,
    Loop,
    LoopTree,
    Matrices,
    Prefetch,
    Scheduled,
    StatementBody,
    variables,
)

# Which elements an instance of a statement touches: names of tensors with subscripts.
Touches: TypeAlias = Callable[[StatementBody], Iterable[tuple[str, tuple[Expression, ...]]]]


@frozen
class Access:
    """An access to a tensor below some loops; ``ranges``: of the iterators of all of them."""

    tensor: str
    subscripts: tuple[Expression, ...]
    arguments: Arguments
    ranges: Ranges


@frozen
class Side:
    """One dimension of a box: from ``first + least`` to ``first + most``."""

    first: LinearForm
    least: int
    most: int

    @property
    def extent(self) -> int:
        """The number of values."""
        return self.most - self.least + 1


def accesses_in(
    tree: LoopTree, bodies: Mapping[str, StatementBody], touches: Touches, ranges: Ranges
) -> Iterator[Access]:
    """The accesses of all instances in a tree; ``ranges``: of the iterators of the loops around it."""
    match tree:
        case Barrier() | Prefetch():
            pass
        case Scheduled(statement, arguments):
            body = bodies[statement]
            values = dict(zip(body.iterators, arguments, strict=True))
            for tensor, subscripts in touches(body):
                yield Access(tensor, subscripts, values, ranges)
        case Matrices(nest=nest):
            yield from accesses_in(nest, bodies, touches, ranges)
        case Loop():
            inside = {**ranges, tree.iterator: iterator_range(tree, ranges)}
            yield from accesses_in(tree.body, bodies, touches, inside)
        case Block(children):
            for child in children:
                yield from accesses_in(child, bodies, touches, ranges)
        case Allocation(_, body):
            yield from accesses_in(body, bodies, touches, ranges)
        case Guard(_, then, otherwise):
            yield from accesses_in(then, bodies, touches, ranges)
            if otherwise is not None:
                yield from accesses_in(otherwise, bodies, touches, ranges)
        case _:
            assert_never(tree)


def box_of(accesses: Sequence[Access], outer: set[str], shape: Sequence[int]) -> tuple[Side, ...] | None:
    """The box around accesses to a tensor of this shape, which moves with the ``outer`` iterators.

    None where that is not a box whose sides have constant lengths.
    """
    boxes = [_sides(access, outer) for access in accesses]
    if not boxes:
        return None
    found: list[Side] = []
    for dimension, extent in enumerate(shape):
        own = [box[dimension] for box in boxes if box is not None]
        if len(own) < len(boxes) or any(side.first != own[0].first for side in own):
            return None
        least, most = min(side.least for side in own), max(side.most for side in own)
        if not own[0].first.factors:  # ranges of ragged tiles are too wide; what is touched is inside
            least, most = max(least, 0), min(most, extent - 1)
        found.append(Side(own[0].first, least, most))
    return tuple(found)


def _sides(access: Access, outer: set[str]) -> list[Side] | None:
    sides: list[Side] = []
    for subscript in access.subscripts:
        form = subscript_form(subscript, access.arguments)
        if form is None:
            return None
        moving = {term: factor for term, factor in form.factors.items() if variables(term) <= outer}
        if not all(isinstance(term, IndexVariable) for term in moving):
            return None
        low: int | float = form.constant
        high: int | float = form.constant
        for term, factor in form.factors.items():
            if term not in moving:
                if variables(term) & outer:
                    return None
                values = range_of(term, access.ranges)
                low += min(factor * values.least, factor * values.most)
                high += max(factor * values.least, factor * values.most)
        if math.isinf(low) or math.isinf(high):
            return None
        sides.append(Side(LinearForm(0, moving), int(low), int(high)))
    return sides


def trips(loop: Loop) -> int | None:
    """How often a loop runs, if that is the same every time."""
    extent = index_form(loop.upper).plus(index_form(loop.lower), -1)
    return None if extent.factors else max(0, extent.constant // loop.step + 1)


def iterator_ranges(loops: Sequence[Loop]) -> Ranges:
    """The ranges of the iterators of nested loops, outermost first."""
    ranges: Ranges = {}
    for loop in loops:
        ranges = {**ranges, loop.iterator: iterator_range(loop, ranges)}
    return ranges


def nest_of(loop: Loop) -> tuple[tuple[Loop, ...], LoopTree]:
    """The loop and those that are all of the body of the one around them, outermost first, and what is inside."""
    nest, tree = [loop], loop.body
    while isinstance(tree, Loop):
        nest.append(tree)
        tree = tree.body
    return tuple(nest), tree


def contiguous_elements(nest: Sequence[Loop], place: LinearForm) -> int | None:
    """How many elements an iteration of the outermost loop writes where those of all loops lie end to end, in order.

    ``place``: the offset of what the innermost iteration writes.  None where they lie otherwise, or where the loops
    inside have bounds that change.
    """
    elements = 1
    for loop in reversed(nest):
        if loop.step != 1 or loop.ranges or place.slope(loop.iterator) != elements:
            return None
        if loop is nest[0]:
            return elements
        count = trips(loop)
        if not count or index_form(loop.lower).factors:
            return None
        elements *= count
    return None
