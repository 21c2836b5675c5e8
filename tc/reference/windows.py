"""A target in windows: parts that a statement is evaluated for one after the other, so that little memory is needed.

Where they depend on how much memory there is, values do not: an element gets its terms in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tc.language.program.affine_form import AffineForm
from tc.language.program.program import Expression, iterators_in
from tc.reference.access import (
    Box,
    SubscriptForm,
    Window,
    bounds,
    halves,
    inside,
    linear_forms,
    volume,
    whole_window,
)
from tc.reference.domain import pieces
from tc.reference.expressions import Frame
from tc.reference.intervals import index_interval

# Instances that are evaluated at a time: the dozen arrays of a step stay near the cache.
STEP: Final = 1 << 18
# Elements of a window.  Where several instances of a box may write an element, windows may have the same instances,
# which then are evaluated for each of them: there are fewer of them, and as few as memory permits where a step of
# instances writes all over the target, but no more than ``MOST_EVALUATIONS``.
_MOST: Final = 1 << 20
MOST_SHARED: Final = 1 << 23
MOST_EVALUATIONS: Final = 4


def restricted(window: Window, frame: Frame) -> Frame:
    """The frame without points of its box that surely write elsewhere."""
    forms = linear_forms(frame.statement.subscripts, frame.positions)
    if forms is None or window.shape == window.whole:
        return frame
    box = list(frame.box)
    for form, interval in zip(forms, window.elements, strict=True):
        for position, coefficient in form.factors.items():
            if volume(tuple(box)) == 0:
                break
            others = AffineForm(form.constant, {p: c for p, c in form.factors.items() if p != position})
            box[position] = _reaching(box[position], bounds(others, tuple(box)), coefficient, interval)
    return replace(frame, box=tuple(box))


def reaches(window: Window, frame: Frame, box: Box) -> bool:
    """Whether points of a box, which is not empty, may write to the window."""
    if window.shape == window.whole:
        return True
    for subscript, interval in zip(frame.statement.subscripts, window.elements, strict=True):
        ends = index_interval(subscript, frame.positions, box)
        if ends is not None and (ends[1] < interval.start or ends[0] >= interval.stop):
            return False
    return True


def windows(frame: Frame, shape: tuple[int, ...], shared: int, first: frozenset[int]) -> Sequence[Window]:
    """The windows of the statement's target.

    ``shared``: of how many elements the totals may be kept where several instances write one.  ``first``: positions of
    iterators for whose values something is computed in every window anew: windows are cut along these first.
    """
    whole = _reached(frame, shape) if frame.statement.blocks else whole_window(shape)
    forms = separate_forms(frame.statement.subscripts, frame.positions)
    is_separate = forms is not None and volume(frame.box) > 0 and inside(forms, shape, frame.box)
    most = _MOST if is_separate else min(shared, MOST_SHARED)
    if volume(whole.elements) <= most:
        return [whole]
    used = [iterators_in((subscript,)) for subscript in frame.statement.subscripts]
    names = {name for name, position in frame.positions.items() if position in first}
    dimensions = frozenset(d for d, found in enumerate(used) if found & names)
    found = [Window(part, shape) for part in pieces(whole.elements, dimensions, lambda part: volume(part) <= most)]
    if is_separate or _instances_stay_together(frame, found):
        return found
    most = max(shared, elements_shared(volume(whole.elements)))
    return [Window(part, shape) for part in pieces(whole.elements, dimensions, lambda part: volume(part) <= most)]


def _reached(frame: Frame, shape: tuple[int, ...]) -> Window:
    """What a step of a block may write: it would take long to go through all elements in every step."""
    whole = whole_window(shape)
    if volume(frame.box) == 0:
        return whole
    elements: list[range] = []
    for subscript, interval in zip(frame.statement.subscripts, whole.elements, strict=True):
        ends = index_interval(subscript, frame.positions, frame.box)
        low, high = (interval.start, interval.stop - 1) if ends is None else ends
        elements.append(range(max(low, interval.start), min(high + 1, interval.stop)))
    return Window(tuple(elements), shape)


def elements_shared(elements: int) -> int:
    """Of how many elements there must be totals where several instances write one: those of a window at least."""
    return min(elements, max(MOST_SHARED, -(-elements // MOST_EVALUATIONS)))


def _instances_stay_together(frame: Frame, found: Sequence[Window]) -> bool:
    """Whether instances that are evaluated in one step write to few windows, so that few are evaluated again."""
    if volume(frame.box) == 0:
        return True
    most = min(2 + len(found) // 8, MOST_EVALUATIONS)
    boxes = (_corner(frame.box, side) for side in (0, 1))
    return all(sum(reaches(window, frame, box) for window in found) <= most for box in boxes)


def _corner(box: Box, side: int) -> Box:
    """What is evaluated in one step at the beginning or the end of a box."""
    while volume(box) > STEP:
        box = halves(box, max(range(len(box)), key=lambda position: len(box[position])))[side]
    return box


def separate_forms(subscripts: Sequence[Expression], positions: Mapping[str, int]) -> tuple[SubscriptForm, ...] | None:
    """The subscripts of a target where each has an iterator of its own, at most; None otherwise."""
    forms = linear_forms(subscripts, positions)
    if forms is None:
        return None
    used = [p for form in forms for p in form.factors]
    separate = len(used) == len(set(used)) and all(len(form.factors) <= 1 for form in forms)
    return forms if separate else None


def _reaching(interval: range, others: tuple[int, int], coefficient: int, elements: range) -> range:
    """The values of an iterator with which ``other + coefficient * iterator`` may be one of the elements."""
    first, last = elements.start - others[1], elements.stop - 1 - others[0]
    if coefficient < 0:
        first, last, coefficient = -last, -first, -coefficient
    low, high = -(-first // coefficient), last // coefficient
    start = max(interval.start, low)
    return range(start, max(start, min(interval.stop, high + 1)))
