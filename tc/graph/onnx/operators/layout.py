"""Operators that move elements, or only look at them in another shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tc.graph.ir.sizes import Dimension, Size, elements
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.joining import concatenated
from tc.graph.operators.pointwise import broadcast_shape


def _identity(operation: Operation) -> Sequence[Value]:
    return [operation.operand(0)]


def _reshape(operation: Operation) -> Sequence[Value]:
    operand, wanted = operation.operand(0), operation.optional(1)
    shape: list[Dimension] = [*((operation.list("shape") or ()) if wanted is None else operation.sizes(wanted))]
    if not operation.integer("allowzero", 0):
        shape = [operand.shape[axis] if size == 0 else size for axis, size in enumerate(shape)]
    open_at = [axis for axis, size in enumerate(shape) if size == -1]
    if len(open_at) > 1:
        raise operation.error("a shape has several -1")
    for axis in open_at:
        rest = elements(size for other, size in enumerate(shape) if other != axis)
        shape[axis] = 0 if rest == 0 else elements(operand.shape) // rest
    return [operation.builder.reshape(operand, tuple(shape))]


def _flatten(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    axis = operation.integer("axis", 1)
    axis = axis + len(operand.shape) if axis < 0 else axis
    shape = (elements(operand.shape[:axis]), elements(operand.shape[axis:]))
    return [operation.builder.reshape(operand, shape)]


def _squeeze(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    axes = operation.axes(1, len(operand.shape))
    if axes is None:
        axes = tuple(axis for axis, extent in enumerate(operand.shape) if extent == 1)
    for axis in axes:
        if operand.shape[axis] != 1:
            raise operation.error(f"dimension {axis} has {operand.shape[axis]} elements, and is squeezed")
    kept = tuple(extent for axis, extent in enumerate(operand.shape) if axis not in axes)
    return [operation.builder.reshape(operand, kept)]


def _unsqueeze(operation: Operation) -> Sequence[Value]:
    operand, given = operation.operand(0), operation.optional(1)
    axes = (operation.list("axes") or ()) if given is None else operation.integers(given)
    rank = len(operand.shape) + len(axes)
    places = {operation.axis(axis, rank) for axis in axes}
    rest = iter(operand.shape)
    shape = tuple(1 if axis in places else next(rest) for axis in range(rank))
    return [operation.builder.reshape(operand, shape)]


def _transpose(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    axes = operation.list("perm") or tuple(reversed(range(len(operand.shape))))
    return [operation.builder.permute(operand, axes)]


def _expand(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    shape = broadcast_shape([operand.shape, operation.sizes(operation.operand(1))], operation.builder.origin)
    return [operation.builder.expand(operand, shape)]


def _slice(operation: Operation) -> Sequence[Value]:
    operand, rank = operation.operand(0), len(operation.operand(0).shape)
    if len(operation.operands) == 1:
        starts: Sequence[Dimension] = operation.list("starts") or ()
        ends: Sequence[Dimension] = operation.list("ends") or ()
    else:
        starts, ends = (operation.sizes(operation.operand(index)) for index in (1, 2))
    axes = operation.axes(3, rank) or tuple(range(len(starts)))
    given = operation.optional(4)
    steps = (1,) * len(starts) if given is None else operation.integers(given)
    first: list[Dimension] = [0] * rank
    step_of, shape = [1] * rank, list(operand.shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        first[axis], step_of[axis] = _begin(start, step, operand.shape[axis]), step
        shape[axis] = _count(first[axis], end, step, operand.shape[axis])
    return [operation.builder.slice(operand, first, step_of, shape)]


def _begin(start: Dimension, step: int, extent: Dimension) -> Dimension:
    last = extent if step > 0 else extent - 1
    if isinstance(start, Size):
        return start
    if start < 0:
        start_at = start + extent
        if isinstance(start_at, Size):
            return start_at if start > -(2**31) else (0 if step > 0 else start_at)
        return max(start_at, 0 if step > 0 else -1)
    if isinstance(last, Size):
        return start if start < 2**31 else last
    return min(start, last)


def _count(first: Dimension, end: Dimension, step: int, extent: Dimension) -> Dimension:
    if not isinstance(end, Size):
        if end < 0:
            end = end + extent if end > -(2**31) else (0 if step > 0 else -1)
        elif isinstance(extent, int):
            end = min(end, extent)
        elif end >= 2**31 - 1:
            end = extent
    if isinstance(end, int):
        end = max(end, 0 if step > 0 else -1)
    span = (end - first) if step > 0 else (first - end)
    count = (span + abs(step) - 1) // abs(step)
    return max(count, 0) if isinstance(count, int) else count


def _concat(operation: Operation) -> Sequence[Value]:
    operands = [operation.operand(index) for index in range(len(operation.operands))]
    rank = len(operands[0].shape)
    axis = operation.axis(operation.integer("axis", 1), rank)
    kept = [operand for operand in operands if operand.shape[axis] != 0] or operands[:1]
    return [concatenated(operation.builder, kept, axis)]


def _split(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    axis = operation.axis(operation.integer("axis", 0), len(operand.shape))
    given, extent = operation.optional(1), operand.shape[axis]
    parts: Sequence[Dimension] | None = operation.list("split") if given is None else operation.sizes(given)
    if parts is None:
        count = operation.integer("num_outputs", len(operation.results))
        each = (extent + count - 1) // count
        parts = [*[each] * (count - 1), extent - each * (count - 1)]
    found: list[Value] = []
    start: Dimension = 0
    for size in parts:
        starts: list[Dimension] = [0] * len(operand.shape)
        shape = list(operand.shape)
        starts[axis], shape[axis] = start, size
        found.append(operation.builder.slice(operand, starts, [1] * len(shape), shape))
        start = start + size
    return found


def _filled(operation: Operation) -> Sequence[Value]:
    from tc.graph.onnx.tensors import array_of

    shape = operation.sizes(operation.operand(0))
    held = operation.attributes.get("value")
    array = np.zeros(1, np.float32) if held is None else array_of(held.t, None, operation.builder.origin)
    return [operation.builder.expand(operation.builder.constant(array.reshape(()), "fill"), shape)]


RULES: Final[dict[str, Rule]] = {
    "Concat": _concat,
    "ConstantOfShape": _filled,
    "Expand": _expand,
    "Flatten": _flatten,
    "Identity": _identity,
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
