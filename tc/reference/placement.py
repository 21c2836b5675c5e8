"""Writing: terms computed over a box land in, or are folded into, the elements of the target."""

from __future__ import annotations

import math
from functools import reduce
from typing import Protocol

import numpy as np

from tc.base.frozen import frozen
from tc.language.program.program import Read
from tc.language.program.written_elements import scatters
from tc.reference.access import SubscriptForm, Window, extents, inside, linear_forms, shifted, strided_view
from tc.reference.bounded import Array, BoolArray
from tc.reference.expressions import Frame, evaluate, require_inside


class Placed(Protocol):
    """Where terms of one box are folded into arrays of the target's shape."""

    def fold(self, operation: np.ufunc, array: Array, terms: Array, neutral: Array) -> None:
        """``array[subscripts] operation= terms`` for every instance; ``neutral`` changes nothing."""


@frozen
class Placement:
    """Where the instances of one box write, in arrays of the target's shape.

    ``forms``: the subscripts, where each iterator occurs in at most one of them and each subscript has at most one:
    then a strided view reaches every element once.  None where elements are reached through their indices.
    ``mask``: the points of the box that are instances.  ``elements``: without forms, what these write.
    """

    frame: Frame
    forms: tuple[SubscriptForm, ...] | None
    mask: BoolArray
    elements: Elements | None

    @property
    def kept(self) -> frozenset[int]:
        """Positions of the iterators that choose the element."""
        forms = self.forms or ()
        return frozenset(p for form in forms for p in form.factors)

    def assign(self, array: Array, terms: Array) -> None:
        """``array[subscripts] = terms``; no element is written twice."""
        if self.forms is not None:
            view = strided_view(array, self.forms, self.frame.box, writeable=True)
            chosen, mask = self._of_elements(terms)
            np.copyto(view, chosen, where=mask)
            return
        assert self.elements is not None
        array.reshape(-1)[self.elements.flat] = self.elements.of(terms, extents(self.frame.box))

    def _of_elements(self, terms: Array) -> tuple[Array, BoolArray]:
        """The terms of the elements, and which of them there are: of points that choose the same one, one at most is an
        instance.
        """
        mask, shape = self.mask, extents(self.frame.box)
        for axis in range(mask.ndim):
            if axis not in self.kept and mask.shape[axis] > 1:
                terms, mask = np.broadcast_to(terms, shape), np.broadcast_to(mask, shape)
                terms = np.take_along_axis(terms, mask.argmax(axis, keepdims=True), axis)
                mask = np.asarray(mask.any(axis, keepdims=True))
                shape = mask.shape
        return terms, mask

    def fold(self, operation: np.ufunc, array: Array, terms: Array, neutral: Array) -> None:
        """``array[subscripts] operation= terms`` for every instance; ``neutral`` changes nothing."""
        if self.forms is None:
            assert self.elements is not None
            chosen = self.elements.of(terms, extents(self.frame.box))
            operation.at(array.reshape(-1), self.elements.flat, chosen.astype(array.dtype))
            return
        if not self.mask.all():
            terms = np.where(self.mask, terms, neutral)
        shape = extents(self.frame.box)
        reduced = tuple(p for p in range(len(shape)) if p not in self.kept)
        if operation is np.multiply:
            terms = np.broadcast_to(terms, shape)
        terms = terms.reshape(terms.shape or (1,) * len(shape))
        total = operation.reduce(terms, axis=reduced, keepdims=True, dtype=array.dtype)
        if operation is np.add:
            absent = math.prod(shape[p] for p in reduced if terms.shape[p] == 1)
            total = total * np.asarray(absent).astype(array.dtype)
        self.fold_reduced(operation, array, total)

    def fold_reduced(self, operation: np.ufunc, array: Array, total: Array) -> None:
        """``fold`` of terms that are combined already over the iterators that are not kept; only with ``forms``."""
        view = strided_view(array, self.forms or (), self.frame.box, writeable=True)
        operation(view, total, out=view)


@frozen
class Elements:
    """Which element of an array each point of a box writes, in the order of the points.

    ``flat``: their positions in the flat array.  ``points``: which of the box's points these are of; None for all.
    """

    flat: Array
    points: BoolArray | None

    def of(self, terms: Array, shape: tuple[int, ...]) -> Array:
        """What the points write, of terms over a box of this shape."""
        if self.points is None:
            return np.broadcast_to(terms, shape).reshape(-1)
        return np.broadcast_to(terms, shape)[self.points]


def _elements(frame: Frame, mask: BoolArray, window: Window) -> Elements:
    """The elements of a window that the points of the frame's box write; what lies in other windows is left out."""
    shape = extents(frame.box)
    subscripts = frame.statement.subscripts
    indices = [evaluate(subscript, frame, mask) for subscript in subscripts]
    flat = np.zeros((), np.int64)
    outside = np.zeros((), np.bool_)
    here = mask
    for dimension, (found, interval, end) in enumerate(zip(indices, window.elements, window.whole, strict=True)):
        index = found.value
        flat = flat * len(interval) + (index - interval.start)
        beyond = (index < 0) | (index >= end)
        scattered = scatters(subscripts[dimension])
        if scattered and frame.check_indices:
            target = Read(frame.statement.target, subscripts, frame.statement.value.type)
            require_inside(target, dimension, end, index, beyond & ~(found.error > 0) & mask, frame)
        if scattered:
            here = here & ~beyond
        else:
            outside = outside | beyond
        if len(interval) < end:
            here = here & (index >= interval.start) & (index < interval.stop)
    if (outside & mask).any():
        raise IndexError(f"statement {frame.statement.name} writes outside {frame.statement.target}")
    if here.all():
        return Elements(np.broadcast_to(flat, shape).reshape(-1), None)
    points = np.broadcast_to(here, shape)
    return Elements(np.broadcast_to(flat, shape)[points], points)


def doubtful(frame: Frame, mask: BoolArray, window: Window) -> BoolArray | None:
    """The elements of a window that scattered instances may write, or not; None where that is certain.

    So it is where an index is computed with an error: from floating point.
    """
    indices = [evaluate(subscript, frame, mask) for subscript in frame.statement.subscripts]
    wavering = mask & reduce(np.logical_or, (index.error > 0 for index in indices))
    if not wavering.any():
        return None
    shape, found = extents(frame.box), np.zeros(window.shape, np.bool_)
    for point in np.argwhere(np.broadcast_to(wavering, shape)):
        part: list[slice] = []
        for index, interval in zip(indices, window.elements, strict=True):
            value = int(np.broadcast_to(index.value, shape)[tuple(point)])
            error = np.broadcast_to(index.error, shape)[tuple(point)]
            reach = len(interval) + abs(value) if not np.isfinite(error) else int(np.ceil(error))
            part.append(slice(max(0, value - reach - interval.start), max(0, value + reach + 1 - interval.start)))
        found[tuple(part)] = True
    return found


def placement(frame: Frame, mask: BoolArray, window: Window) -> Placement:
    """Where the statement of the frame writes at the points of its box (not empty) where ``mask`` holds.

    ``window``: of the target, for whose elements there are arrays.
    """
    forms = linear_forms(frame.statement.subscripts, frame.positions)
    if forms is not None:
        forms = shifted(forms, window.origin)
        used = [p for form in forms for p in form.factors]
        separable = len(used) == len(set(used)) and all(len(form.factors) <= 1 for form in forms)
        if not separable or not inside(forms, window.shape, frame.box):
            forms = None
    return Placement(frame, forms, mask, _elements(frame, mask, window) if forms is None else None)
