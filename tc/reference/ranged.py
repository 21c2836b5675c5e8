"""Boxes of instances without those that are surely outside of ranges that read tensors."""

from __future__ import annotations

from dataclasses import replace

from tc.language.program.program import Expression, IteratorReference, iterators_in
from tc.language.program.within import ranges_in
from tc.reference.access import Box, volume
from tc.reference.expressions import ALWAYS, Frame, evaluate


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
