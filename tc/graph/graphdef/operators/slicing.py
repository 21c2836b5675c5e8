"""Ranges of elements along every dimension: of tensors, which are views, and of known contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from tc.base.frozen import frozen
from tc.graph.graphdef.operation import Operation, Operator
from tc.graph.ir.sizes import Dimension, Shape, Size, least, number
from tc.graph.ir.values import Value

# The first element, the step, and how many elements there are.
Span: TypeAlias = tuple[Dimension, int, Dimension]


@frozen
class Ranges:
    """``counts`` elements of every dimension from ``starts`` on, by ``steps``.

    ``shape``: of the result, with dimensions of one element more or fewer.
    """

    starts: tuple[Dimension, ...]
    steps: tuple[int, ...]
    counts: Shape
    shape: Shape

    def of_value(self, operation: Operation, operand: Value) -> Value:
        """The elements of a tensor."""
        builder = operation.builder
        return builder.reshape(builder.slice(operand, self.starts, self.steps, self.counts), self.shape)

    def of_contents(self, array: np.ndarray) -> np.ndarray:
        """The elements of contents; GraphError where a range is open."""
        for axis, (start, step, count) in enumerate(zip(self.starts, self.steps, self.counts, strict=True)):
            first, many = number(start, "the begin of a slice"), number(count, "the extent of a slice")
            array = np.take(array, first + step * np.arange(many), axis)
        return array.reshape([number(extent, "the extent of a slice") for extent in self.shape])


def strided_ranges(operation: Operation, shape: Shape) -> Ranges:
    """What a ``StridedSlice`` chooses from a tensor of the shape: Python's subscripts, as masks encode them."""
    begins, ends, steps = operation.sizes(1), operation.sizes(2), operation.integers(3)
    if not len(begins) == len(ends) == len(steps):
        raise operation.error("begin, end and strides must have as many elements as each other")
    names = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    begin_mask, end_mask, ellipsis, new_axis, shrink = (operation.integer(f"{name}_mask", 0) for name in names)
    if ellipsis & (ellipsis - 1):
        raise operation.error("a subscript has several ellipses")
    taken = sum(1 for place in range(len(steps)) if not (new_axis | ellipsis) >> place & 1)
    if taken > len(shape):
        raise operation.error(f"{taken} subscripts of a tensor with {len(shape)} dimensions")
    found: list[Span] = []
    kept: list[Dimension] = []
    for place, step in enumerate(steps):
        if ellipsis >> place & 1:
            rest = range(len(found), len(found) + len(shape) - taken)
            found += [(0, 1, shape[axis]) for axis in rest]
            kept += [shape[axis] for axis in rest]
        elif new_axis >> place & 1:
            kept.append(1)
        elif shrink >> place & 1:
            found.append((_index(operation, begins[place], shape[len(found)]), 1, 1))
        else:
            begin = None if begin_mask >> place & 1 else begins[place]
            end = None if end_mask >> place & 1 else ends[place]
            if step == 0:
                raise operation.error("a stride must not be 0")
            found.append(_span(begin, end, step, shape[len(found)]))
            kept.append(found[-1][2])
    rest = range(len(found), len(shape))
    found += [(0, 1, shape[axis]) for axis in rest]
    kept += [shape[axis] for axis in rest]
    starts, by, counts = zip(*found, strict=True) if found else ((), (), ())
    return Ranges(tuple(starts), tuple(by), tuple(counts), tuple(kept))


def _index(operation: Operation, index: Dimension, extent: Dimension) -> Dimension:
    if isinstance(index, int) and isinstance(extent, int) and not -extent <= index < extent:
        raise operation.error(f"the subscript {index} is outside of a dimension with {extent} elements")
    return index + extent if isinstance(index, int) and index < 0 else index


def _span(begin: Dimension | None, end: Dimension | None, step: int, extent: Dimension) -> Span:
    """Python's ``begin:end:step`` of a dimension."""
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    first = _clamped(begin, low, high, extent) if begin is not None else (low if step > 0 else high)
    last = _clamped(end, low, high, extent) if end is not None else (high if step > 0 else low)
    span = last - first if step > 0 else first - last
    count = (span + abs(step) - 1) // abs(step)
    return first, step, max(count, 0) if isinstance(count, int) else count


def _clamped(at: Dimension, low: int, high: Dimension, extent: Dimension) -> Dimension:
    """A bound within the dimension; one that is open is taken to be inside, and negative ones count from the end."""
    if isinstance(at, Size) or at == 0:
        return at if isinstance(high, Size) or isinstance(at, Size) else min(at, high)
    if at < 0:
        at = at + extent
        return max(at, low) if isinstance(at, int) else at
    return least(at, high)


def plain_ranges(operation: Operation, shape: Shape) -> Ranges:
    """What a ``Slice`` chooses; -1 elements are those to the end."""
    begins, sizes = operation.sizes(1), operation.sizes(2)
    if not len(begins) == len(sizes) == len(shape):
        raise operation.error(f"begin and size must have {len(shape)} elements, as the tensor has dimensions")
    counts = tuple(
        extent - begin if size == -1 else size for begin, size, extent in zip(begins, sizes, shape, strict=True)
    )
    for begin, count, extent in zip(begins, counts, shape, strict=True):
        numbers = isinstance(begin, int) and isinstance(count, int) and isinstance(extent, int)
        if numbers and not (begin >= 0 and 0 <= count <= extent - begin):
            raise operation.error(f"{count} elements from {begin} on are outside of a dimension with {extent} elements")
    return Ranges(begins, (1,) * len(shape), counts, counts)


def _slice(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    return [plain_ranges(operation, operand.shape).of_value(operation, operand)]


def _strided(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    return [strided_ranges(operation, operand.shape).of_value(operation, operand)]


OPERATORS: Final = {"Slice": Operator(_slice, 3), "StridedSlice": Operator(_strided, 4)}
