"""The instances of a statement: boxes that hold them, and masks that say which points they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tc.language.program.program import Expression, IteratorReference, Statement, iterators_in
from tc.language.program.within import ranges_in
from tc.language.program.written_elements import over_elements, written_iterators
from tc.reference.access import Box, bounds, extents, grid, halves, linear_form, volume
from tc.reference.bounded import BoolArray
from tc.reference.expressions import ALWAYS, Frame, all_of, evaluate


def positions(statement: Statement) -> dict[str, int]:
    """The dimension that each iterator has in arrays over a box."""
    return {iterator.name: position for position, iterator in enumerate(statement.iterators)}


def bounding_box(frame: Frame) -> Box:
    """The smallest box of ranges that holds the iteration domain, conditions apart; the frame's own box is ignored.

    A range that depends on an empty one is empty.
    """
    count = len(frame.statement.iterators)
    box = [range(1)] * count
    for position, iterator in enumerate(frame.statement.iterators):
        here = replace(frame, box=tuple(box))
        used = iterators_in((iterator.begin, iterator.end))
        if any(len(box[frame.positions[name]]) == 0 for name in used):
            box[position] = range(0)
            continue
        low, high = bounds_on_box(iterator.begin, here)[0], bounds_on_box(iterator.end, here)[1]
        box[position] = range(low, max(low, high))
    return tuple(box)


def bounds_on_box(expression: Expression, frame: Frame) -> tuple[int, int]:
    """The least and the greatest value of an index on the frame's box, which is not empty where it matters."""
    form = linear_form(expression, frame.positions)
    if form is not None:
        return bounds(form, frame.box)
    values = evaluate(expression, frame, ALWAYS).value
    return int(values.min()), int(values.max())


def fills_box(statement: Statement) -> bool:
    """Whether every point of the bounding box is an instance, as far as the statement's form tells."""
    bounds = (bound for iterator in statement.iterators for bound in (iterator.begin, iterator.end))
    return not statement.conditions and not iterators_in(bounds)


def instances(frame: Frame) -> BoolArray:
    """Which points of the frame's box are instances, as an open grid or ``ALWAYS``."""
    inside: list[BoolArray] = []
    for position, iterator in enumerate(frame.statement.iterators):
        if iterators_in((iterator.begin, iterator.end)):
            value = grid(frame.box, position)
            inside.append(np.asarray(evaluate(iterator.begin, frame, ALWAYS).value <= value))
            inside.append(np.asarray(value < evaluate(iterator.end, frame, ALWAYS).value))
    mask = all_of(inside)
    for condition in frame.statement.conditions:
        mask = np.logical_and(mask, evaluate(condition, frame, mask).value)
    return mask


def initialized(statement: Statement, shape: Sequence[Expression]) -> Statement:
    """The statement whose instances write the elements that ``op=!`` sets to the neutral element first.

    An element is set even if no instance combines anything into it: iterators, ranges and conditions that only
    concern the reduction are left out.  ``shape``: of the target, all of whose elements in a dimension are set where
    data choose them.
    """
    needed = {iterator.name for iterator in written_iterators(statement)}
    for iterator in reversed(statement.iterators):
        if iterator.name in needed:
            needed |= iterators_in((iterator.begin, iterator.end))
    kept = tuple(iterator for iterator in statement.iterators if iterator.name in needed)
    whole = over_elements(statement, shape)
    added = tuple(iterator for iterator in whole.iterators if iterator not in statement.iterators)
    return replace(whole, iterators=(*kept, *added))


def pieces(
    box: Box, first: frozenset[int], fits: Callable[[Box], bool], needed: Callable[[Box], bool] | None = None
) -> Iterator[Box]:
    """The box cut until every piece fits, along the longest iterator of ``first`` and then of the others.

    ``needed``: false for what is left out, with all pieces of it.
    """
    if volume(box) == 0 or (needed is not None and not needed(box)):
        return
    lengths = extents(box)
    candidates = [p for p in first if lengths[p] > 1] or [p for p in range(len(box)) if lengths[p] > 1]
    if fits(box) or not candidates:
        yield box
        return
    for half in halves(box, max(candidates, key=lambda p: (lengths[p], -p))):
        yield from pieces(half, first, fits, needed)


# --- without those that are surely outside of ranges that read tensors


def ranging_positions(frame: Frame) -> frozenset[int]:
    """The dimensions of the iterators that such ranges depend on: along them, boxes are cut first."""
    names = iterators_in(bound for inside in ranges_in(frame.statement.value) for bound in (inside.begin, inside.end))
    return frozenset(frame.positions[name] for name in names)


def within_ranges(frame: Frame, box: Box) -> Box:
    """The box, cut to where its ranges may be; the whole box where a bound is wrong, so that it is evaluated."""
    for inside in ranges_in(frame.statement.value):
        if volume(box) == 0 or not isinstance(inside.index, IteratorReference):
            return box
        position = frame.positions[inside.index.name]
        least, latest = _ends(inside.begin, frame, box)
        earliest, most = _ends(inside.end, frame, box)
        if min(least, earliest) < 0 or max(latest, most) > _ends(inside.extent, frame, box)[0]:
            return box
        start = max(box[position].start, least)
        found = list(box)
        found[position] = range(start, max(start, min(box[position].stop, most)))
        box = tuple(found)
    return box


def _ends(expression: Expression, frame: Frame, box: Box) -> tuple[int, int]:
    """The least and the greatest value over a box that is not empty."""
    used = {frame.positions[name] for name in iterators_in((expression,))}
    own = tuple(interval if p in used else interval[:1] for p, interval in enumerate(box))
    value = evaluate(expression, replace(frame, box=own), ALWAYS).value
    return int(value.min()), int(value.max())
