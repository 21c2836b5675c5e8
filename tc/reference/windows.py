"""A target in windows: parts that a statement is evaluated for one after the other, so that little memory is needed.

They do not depend on how much memory there is: neither do the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Final

from tc.language.program.program import Expression
from tc.reference.access import Box, LinearForm, inside, linear_forms, volume
from tc.reference.domain import pieces
from tc.reference.expressions import Frame

# Elements of a window.  Where several instances of a box may write an element, windows may have the same instances,
# which then are evaluated for each of them: there are fewer of them.
_MOST: Final = 1 << 20
MOST_SHARED: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class Window:
    """Ranges of the elements of a target of the shape ``whole``."""

    elements: Box
    whole: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
        return tuple(len(interval) for interval in self.elements)

    @property
    def origin(self) -> tuple[int, ...]:
        """The first element."""
        return tuple(interval.start for interval in self.elements)

    @property
    def slices(self) -> tuple[slice | EllipsisType, ...]:
        """Where it lies in arrays of the target's shape, as a view also of those without dimensions."""
        return (*(slice(interval.start, interval.stop) for interval in self.elements), ...)

    def restricted(self, frame: Frame) -> Frame:
        """The frame without points of its box that surely write elsewhere."""
        forms = linear_forms(frame.statement.subscripts, frame.positions)
        if forms is None or self.shape == self.whole:
            return frame
        box = list(frame.box)
        for form, interval in zip(forms, self.elements, strict=True):
            for position, coefficient in form.coefficients.items():
                if volume(tuple(box)) == 0:
                    break
                others = LinearForm(form.constant, {p: c for p, c in form.coefficients.items() if p != position})
                box[position] = _reaching(box[position], others.bounds(tuple(box)), coefficient, interval)
        return replace(frame, box=tuple(box))


def windows(frame: Frame, shape: tuple[int, ...]) -> Iterator[Window]:
    """The windows of the statement's target."""
    whole = tuple(range(extent) for extent in shape)
    forms = separate_forms(frame.statement.subscripts, frame.positions)
    is_separate = forms is not None and volume(frame.box) > 0 and inside(forms, shape, frame.box)
    most = _MOST if is_separate else MOST_SHARED
    if volume(whole) <= most:
        yield Window(whole, shape)
        return
    for elements in pieces(whole, frozenset(), lambda part: volume(part) <= most):
        yield Window(elements, shape)


def separate_forms(subscripts: Sequence[Expression], positions: Mapping[str, int]) -> tuple[LinearForm, ...] | None:
    """The subscripts of a target where each has an iterator of its own, at most; None otherwise."""
    forms = linear_forms(subscripts, positions)
    if forms is None:
        return None
    used = [p for form in forms for p in form.coefficients]
    separate = len(used) == len(set(used)) and all(len(form.coefficients) <= 1 for form in forms)
    return forms if separate else None


def _reaching(interval: range, others: tuple[int, int], coefficient: int, elements: range) -> range:
    """The values of an iterator with which ``other + coefficient * iterator`` may be one of the elements."""
    first, last = elements.start - others[1], elements.stop - 1 - others[0]
    if coefficient < 0:
        first, last, coefficient = -last, -first, -coefficient
    low, high = -(-first // coefficient), last // coefficient
    start = max(interval.start, low)
    return range(start, max(start, min(interval.stop, high + 1)))
