"""Where the instances of a statement touch a tensor: strided views for affine subscripts, index arrays otherwise.

A *box* is a tuple of ranges, one per iterator of the statement.  Arrays over a box are open grids: they have one
dimension per iterator, of size 1 where they do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tc.base.frozen import frozen
from tc.language.program.affine_form import AffineForm, affine_form
from tc.language.program.program import Expression, IteratorReference
from tc.reference.bounded import Array

ElementType = TypeVar("ElementType", bound=np.generic)
Box: TypeAlias = tuple[range, ...]


@frozen
class Window:
    """Ranges of the elements of a tensor of the shape ``whole``."""

    elements: Box
    whole: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
        return extents(self.elements)

    @property
    def origin(self) -> tuple[int, ...]:
        """The first element."""
        return tuple(interval.start for interval in self.elements)

    def holds(self, other: Window) -> bool:
        """Whether all elements of another one are elements of it."""
        pairs = zip(self.elements, other.elements, strict=True)
        return not volume(other.elements) or all(a.start <= b.start and b.stop <= a.stop for a, b in pairs)

    def joined(self, other: Window) -> Window:
        """The smallest one that holds both."""
        pairs = zip(self.elements, other.elements, strict=True)
        joined = (range(min(a.start, b.start), max(a.stop, b.stop)) if a and b else a or b for a, b in pairs)
        return Window(tuple(joined), self.whole)

    def slices(self, origin: tuple[int, ...]) -> tuple[slice | EllipsisType, ...]:
        """Where it lies in arrays that begin at an element, as a view also of those without dimensions."""
        pairs = zip(self.elements, origin, strict=True)
        return (*(slice(interval.start - first, interval.stop - first) for interval, first in pairs), ...)


def whole_window(shape: tuple[int, ...]) -> Window:
    """All elements."""
    return Window(tuple(range(extent) for extent in shape), shape)


def extents(box: Box) -> tuple[int, ...]:
    """Number of points along each dimension."""
    return tuple(len(interval) for interval in box)


def volume(box: Box) -> int:
    """Number of points."""
    return math.prod(extents(box))


def grid(box: Box, position: int) -> Array:
    """The values of one iterator, as an open grid."""
    shape = [1] * len(box)
    shape[position] = len(box[position])
    return np.arange(box[position].start, box[position].stop, dtype=np.int64).reshape(shape)


# Of a subscript; iterators by position.
SubscriptForm: TypeAlias = AffineForm[int]


def bounds(form: SubscriptForm, box: Box) -> tuple[int, int]:
    """Least and greatest value on a box that is not empty."""
    ends = [(c * box[p].start, c * (box[p].stop - 1)) for p, c in form.factors.items()]
    return form.constant + sum(min(e) for e in ends), form.constant + sum(max(e) for e in ends)


def linear_form(expression: Expression, positions: Mapping[str, int]) -> SubscriptForm | None:
    """The expression as a linear form in the iterators; None where it is not written as one."""
    form = affine_form(expression)
    factors = {positions[term.name]: f for term, f in form.factors.items() if isinstance(term, IteratorReference)}
    return AffineForm(form.constant, factors) if len(factors) == len(form.factors) else None


def linear_forms(subscripts: Sequence[Expression], positions: Mapping[str, int]) -> tuple[SubscriptForm, ...] | None:
    """All subscripts as linear forms, or None."""
    forms = [linear_form(subscript, positions) for subscript in subscripts]
    found = tuple(form for form in forms if form is not None)
    return found if len(found) == len(forms) else None


def shifted(forms: Sequence[SubscriptForm], origin: Sequence[int]) -> tuple[SubscriptForm, ...]:
    """The same positions counted from an origin."""
    return tuple(form.plus(AffineForm(-first)) for form, first in zip(forms, origin, strict=True))


def inside(forms: Sequence[SubscriptForm], shape: Sequence[int], box: Box) -> bool:
    """Whether every point of the box (not empty) lies inside the shape."""
    ends = [bounds(form, box) for form in forms]
    return all(low >= 0 and high < extent for (low, high), extent in zip(ends, shape, strict=True))


def strided_view(
    array: npt.NDArray[ElementType], forms: Sequence[SubscriptForm], box: Box, writeable: bool = False
) -> npt.NDArray[ElementType]:
    """The elements that the points of the box touch, as an open grid; the forms are ``inside`` the array's shape.

    An iterator that no form depends on has size 1.  A writeable view is of use only if the forms are injective.
    """
    starts: list[slice] = []
    shape, strides = [1] * len(box), [0] * len(box)
    for form, stride in zip(forms, array.strides, strict=True):
        starts.append(slice(form.constant + sum(c * box[p].start for p, c in form.factors.items()), None))
        for position, coefficient in form.factors.items():
            shape[position] = len(box[position])
            strides[position] += coefficient * stride
    corner = array[tuple(starts)] if starts else array
    return np.lib.stride_tricks.as_strided(corner, shape, strides, writeable=writeable)


def halves(box: Box, position: int) -> tuple[Box, Box]:
    """The box cut in two along one iterator, whose range holds at least two points."""
    interval = box[position]
    middle = interval.start + len(interval) // 2
    first, second = range(interval.start, middle), range(middle, interval.stop)
    return (*box[:position], first, *box[position + 1 :]), (*box[:position], second, *box[position + 1 :])
