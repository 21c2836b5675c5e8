"""A target in windows: parts that a statement is evaluated for one after the other, so that little memory is needed.

They do not depend on how much memory there is: neither do the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Final

from tc.language.program import Expression
from tc.reference.access import Box, LinearForm, inside, linear_forms, volume
from tc.reference.domain import pieces
from tc.reference.expressions import Frame

# Elements of the target.
_MOST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Window:
    """Ranges of the elements of a target; ``forms``: the subscripts of who writes it, None where it is all of it."""

    elements: Box
    forms: tuple[LinearForm, ...] | None

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
        """The frame with those points of its box that write into the window."""
        if self.forms is None:
            return frame
        box = list(frame.box)
        forms = linear_forms(frame.statement.subscripts, frame.positions) or ()
        for form, interval in zip(forms, self.elements, strict=True):
            for position, coefficient in form.coefficients.items():
                box[position] = _reaching(box[position], form.constant, coefficient, interval)
        return replace(frame, box=tuple(box))


def windows(frame: Frame, shape: tuple[int, ...]) -> Iterator[Window]:
    """The windows of the statement's target; one where an element is not chosen by an iterator for each dimension."""
    whole = tuple(range(extent) for extent in shape)
    forms = separate_forms(frame.statement.subscripts, frame.positions)
    if forms is None or volume(frame.box) == 0 or not inside(forms, shape, frame.box):
        yield Window(whole, None)
        return
    for elements in pieces(whole, frozenset(), lambda part: volume(part) <= _MOST):
        yield Window(elements, forms)


def separate_forms(subscripts: Sequence[Expression], positions: Mapping[str, int]) -> tuple[LinearForm, ...] | None:
    """The subscripts of a target where each has an iterator of its own, at most; None otherwise."""
    forms = linear_forms(subscripts, positions)
    if forms is None:
        return None
    used = [p for form in forms for p in form.coefficients]
    separate = len(used) == len(set(used)) and all(len(form.coefficients) <= 1 for form in forms)
    return forms if separate else None


def _reaching(interval: range, constant: int, coefficient: int, elements: range) -> range:
    """The values of an iterator with which ``constant + coefficient * iterator`` is one of the elements."""
    first, last = elements.start - constant, elements.stop - 1 - constant
    if coefficient < 0:
        first, last, coefficient = -last, -first, -coefficient
    low, high = -(-first // coefficient), last // coefficient
    start = max(interval.start, low)
    return range(start, max(start, min(interval.stop, high + 1)))
