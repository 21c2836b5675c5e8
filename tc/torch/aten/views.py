"""Operators that move nothing, or lay elements out in another way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import torch

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.operators.joining import concatenated
from tc.graph.operators.pointwise import cast, pointwise
from tc.torch.fx.operation import Operation, Rules, extents

aten: Final = torch.ops.aten


def _reshaped(operation: Operation) -> Value:
    name = "size" if operation.has("size") else "shape"
    return operation.builder.reshape(operation.value("self"), known(operation.integers(name), operation.value("self")))


def known(shape: Sequence[int], operand: Value) -> tuple[int, ...]:
    """A shape with a number in the place of -1."""
    if -1 not in shape:
        return tuple(shape)
    total = math.prod(extents(operand))
    rest = math.prod(extent for extent in shape if extent != -1)
    return tuple(total // max(rest, 1) if extent == -1 else extent for extent in shape)


def _permuted(operation: Operation) -> Value:
    own = operation.value("self")
    rank = len(own.shape)
    return operation.builder.permute(own, [axis % rank for axis in operation.integers("dims")] if rank else [])


def _transposed(operation: Operation) -> Value:
    own = operation.value("self")
    order = list(range(len(own.shape)))
    if len(order) > 1:
        first, second = (operation.axis(name) for name in ("dim0", "dim1")) if operation.has("dim0") else (0, 1)
        order[first], order[second] = order[second], order[first]
    return operation.builder.permute(own, order)


def _expanded(operation: Operation) -> Value:
    own, sizes = operation.value("self"), operation.integers("size")
    missing = len(sizes) - len(own.shape)
    shape = [own.shape[at - missing] if size == -1 else size for at, size in enumerate(sizes)]
    return operation.builder.expand(own, tuple(shape))


def _squeezed(operation: Operation) -> Value:
    own = operation.value("self")
    rank = len(own.shape)
    dropped = {a % max(rank, 1) for a in operation.integers("dim")} if operation.has("dim") else set(range(rank))
    shape = tuple(extent for axis, extent in enumerate(own.shape) if axis not in dropped or extent != 1)
    return operation.builder.reshape(own, shape)


def _unsqueezed(operation: Operation) -> Value:
    own = operation.value("self")
    axis = operation.axis("dim", len(own.shape) + 1)
    return operation.builder.reshape(own, (*own.shape[:axis], 1, *own.shape[axis:]))


def sliced(operation: Operation, own: Value, axis: int, start: int, step: int, count: int) -> Value:
    """So many elements of one dimension."""
    starts, steps = [0] * len(own.shape), [1] * len(own.shape)
    starts[axis], steps[axis] = start if count else 0, step
    return operation.builder.slice(own, starts, steps, [*own.shape[:axis], count, *own.shape[axis + 1 :]])


def _slice(operation: Operation) -> Value:
    own, axis, step = operation.value("self"), operation.axis("dim"), operation.integer("step")
    extent = extents(own)[axis]
    start, end = bounds(operation, extent)
    return sliced(operation, own, axis, start, step, max(0, -(-(end - start) // step)))


def bounds(operation: Operation, extent: int) -> tuple[int, int]:
    """Where a slice begins and ends, as Python counts."""
    start = operation.integer("start") if operation.has("start") else 0
    end = operation.integer("end") if operation.has("end") else extent
    found, _, _ = slice(start, end).indices(extent)
    return found, max(found, slice(start, end).indices(extent)[1])


def _narrowed(operation: Operation) -> Value:
    own, axis = operation.value("self"), operation.axis("dim")
    start = operation.integer("start")
    first = start + extents(own)[axis] if start < 0 else start
    return sliced(operation, own, axis, first, 1, operation.integer("length"))


def _selected(operation: Operation) -> Value:
    own, axis = operation.value("self"), operation.axis("dim")
    place = operation.integer("index") % extents(own)[axis]
    part = sliced(operation, own, axis, place, 1, 1)
    return operation.builder.reshape(part, (*own.shape[:axis], *own.shape[axis + 1 :]))


def _split(operation: Operation) -> Sequence[Value]:
    own, axis = operation.value("self"), operation.axis("dim")
    extent = extents(own)[axis]
    if operation.has("split_sizes"):
        sizes = operation.integers("split_sizes")
    else:
        size = max(operation.integer("split_size"), 1)
        sizes = [min(size, extent - start) for start in range(0, extent, size)] or [0]
    found, start = [], 0
    for size in sizes:
        found.append(sliced(operation, own, axis, start, 1, size))
        start += size
    return found


def _unbound(operation: Operation) -> Sequence[Value]:
    own, axis = operation.value("self"), operation.axis("dim")
    shape = (*own.shape[:axis], *own.shape[axis + 1 :])
    count = extents(own)[axis]
    return [operation.builder.reshape(sliced(operation, own, axis, at, 1, 1), shape) for at in range(count)]


def converted(operation: Operation, value: Value, type: ScalarType) -> Value:
    """The elements as another type; what is not 0 is true."""
    if type is ScalarType.BOOL and value.type is not ScalarType.BOOL:
        return pointwise(operation.builder, "to_bool", "{0} != 0", [value], ScalarType.BOOL)
    return cast(operation.builder, value, type)


def _joined(operation: Operation) -> Value:
    given = operation.values("tensors")
    found = [value for value in given if value.shape != (0,)] or given[:1]
    every = [converted(operation, value, operation.type) for value in found]
    axis = (operation.integer("dim") if operation.has("dim") else 0) % max(len(every[0].shape), 1)
    return every[0] if len(every) == 1 else concatenated(operation.builder, every, axis)


def _stacked(operation: Operation) -> Value:
    every = operation.values("tensors")
    axis = operation.axis("dim", len(every[0].shape) + 1)
    raised = [operation.builder.reshape(v, (*v.shape[:axis], 1, *v.shape[axis:])) for v in every]
    return concatenated(operation.builder, raised, axis) if len(raised) > 1 else raised[0]


RULES: Final[Rules] = {
    aten.view.default: _reshaped,
    aten.view_copy.default: _reshaped,
    aten._unsafe_view.default: _reshaped,
    aten.reshape.default: _reshaped,
    aten.permute.default: _permuted,
    aten.permute_copy.default: _permuted,
    aten.transpose.int: _transposed,
    aten.transpose_copy.int: _transposed,
    aten.t.default: _transposed,
    aten.t_copy.default: _transposed,
    aten.expand.default: _expanded,
    aten.expand_copy.default: _expanded,
    aten.squeeze.default: _squeezed,
    aten.squeeze_copy.default: _squeezed,
    aten.squeeze.dim: _squeezed,
    aten.squeeze_copy.dim: _squeezed,
    aten.squeeze.dims: _squeezed,
    aten.squeeze_copy.dims: _squeezed,
    aten.unsqueeze.default: _unsqueezed,
    aten.unsqueeze_copy.default: _unsqueezed,
    aten.slice.Tensor: _slice,
    aten.slice_copy.Tensor: _slice,
    aten.narrow_copy.default: _narrowed,
    aten.select.int: _selected,
    aten.select_copy.int: _selected,
    aten.split_with_sizes.default: _split,
    aten.split_with_sizes_copy.default: _split,
    aten.split.Tensor: _split,
    aten.split_copy.Tensor: _split,
    aten.unbind.int: _unbound,
    aten.unbind_copy.int: _unbound,
    aten.cat.default: _joined,
    aten.stack.default: _stacked,
}
