"""Operators that look at elements in another shape, move or repeat them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.graphdef.operation import Operation, Operator
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension, Shape, elements, number, shape_text
from tc.graph.ir.values import Value
from tc.graph.operators.joining import concatenated
from tc.graph.operators.matrices import tiled


def _first(operation: Operation) -> Sequence[Value]:
    return [operation.operands[0]]


def _all(operation: Operation) -> Sequence[Value]:
    return operation.operands


def target_shape(operation: Operation, shape: Shape) -> Shape:
    """The shape to which one is reshaped; -1 stands for as many elements as there are."""
    wanted = list(operation.sizes(1))
    if any(isinstance(size, int) and size < -1 for size in wanted):
        raise operation.error(f"extents must be -1 or more, and are {shape_text(wanted)}")
    open_at = [axis for axis, size in enumerate(wanted) if size == -1]
    if len(open_at) > 1:
        raise operation.error("a shape has several -1")
    for axis in open_at:
        rest = elements(size for other, size in enumerate(wanted) if other != axis)
        wanted[axis] = 0 if rest == 0 else elements(shape) // rest
    return tuple(wanted)


def _reshape(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    return [operation.builder.reshape(operand, target_shape(operation, operand.shape))]


def expanded_shape(operation: Operation, shape: Shape) -> Shape:
    """The shape with a dimension of one element more."""
    axis = operation.axis(operation.whole(1), len(shape) + 1)
    return (*shape[:axis], 1, *shape[axis:])


def _expand_dimensions(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    return [operation.builder.reshape(operand, expanded_shape(operation, operand.shape))]


def squeezed_shape(operation: Operation, shape: Shape) -> Shape:
    """The shape without dimensions of one element: those that are named, or all."""
    axes = {operation.axis(axis, len(shape)) for axis in operation.list("squeeze_dims")}
    axes = axes or {axis for axis, extent in enumerate(shape) if extent == 1}
    for axis in axes:
        if isinstance(shape[axis], int) and shape[axis] != 1:
            raise operation.error(f"dimension {axis} has {shape[axis]} elements, and is squeezed")
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def _squeeze(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    return [operation.builder.reshape(operand, squeezed_shape(operation, operand.shape))]


def _transpose(operation: Operation) -> Sequence[Value]:
    operand, axes = operation.operand(0), operation.integers(1)
    return [operation.builder.permute(operand, [operation.axis(axis, len(operand.shape)) for axis in axes])]


def _tile(operation: Operation) -> Sequence[Value]:
    operand, times = operation.operand(0), operation.shape(1, "multiples")
    if len(times) != len(operand.shape):
        raise operation.error(f"multiples must have {len(operand.shape)} elements, and have {len(times)}")
    return [tiled(operation.builder, operand, times)]


def _broadcast(operation: Operation) -> Sequence[Value]:
    return [operation.builder.expand(operation.operand(0), operation.shape(1))]


def _pack(operation: Operation) -> Sequence[Value]:
    shape = operation.operands[0].shape
    for operand in operation.operands:
        if len(operand.shape) != len(shape):
            raise operation.error("operands must have as many dimensions as each other")
    axis = operation.axis(operation.integer("axis", 0), len(shape) + 1)
    rows = [
        operation.builder.reshape(operand, (*operand.shape[:axis], 1, *operand.shape[axis:]))
        for operand in operation.operands
    ]
    return [concatenated(operation.builder, rows, axis)]


def _unpack(operation: Operation) -> Sequence[Value]:
    operand, count = operation.operand(0), operation.integer("num")
    shape = operand.shape
    axis = operation.axis(operation.integer("axis", 0), len(shape))
    _require_few(operation, count)
    if isinstance(shape[axis], int) and shape[axis] != count:
        raise operation.error(f"dimension {axis} has {shape[axis]} elements, and is unpacked to {count}")
    rows = _parts(operation.builder, operand, axis, [1] * count)
    return [operation.builder.reshape(row, (*shape[:axis], *shape[axis + 1 :])) for row in rows]


def concat_places(operation: Operation) -> tuple[int, range]:
    """Which operand is the axis, and which are put together."""
    count = len(operation.operands)
    return (0, range(1, count)) if operation.kind == "Concat" else (count - 1, range(count - 1))


def _concat(operation: Operation) -> Sequence[Value]:
    at, places = concat_places(operation)
    operands = [operation.operands[place] for place in places]
    for operand in operands:
        if len(operand.shape) != len(operands[0].shape):
            raise operation.error("operands must have as many dimensions as each other")
    axis = operation.axis(operation.whole(at), len(operands[0].shape))
    kept = [operand for operand in operands if operand.shape[axis] != 0] or operands[:1]
    return [concatenated(operation.builder, kept, axis)]


def _split(operation: Operation) -> Sequence[Value]:
    operand, count = operation.operand(1), operation.integer("num_split")
    axis = operation.axis(operation.whole(0), len(operand.shape))
    extent = operand.shape[axis]
    _require_few(operation, count)
    if count < 1 or (isinstance(extent, int) and extent % count):
        raise operation.error(f"dimension {axis} has {extent} elements, which are not {count} times as many")
    return _parts(operation.builder, operand, axis, [extent // count] * count)


def _split_by_sizes(operation: Operation) -> Sequence[Value]:
    operand, parts = operation.operand(0), list(operation.integers(1))
    axis = operation.axis(operation.whole(2), len(operand.shape))
    extent = number(operand.shape[axis], f"dimension {axis} of `{operand.name}`")
    if parts.count(-1) == 1:
        parts[parts.index(-1)] = extent - sum(parts) - 1
    if sum(parts) != extent or min(parts, default=0) < 0:
        raise operation.error(f"parts of {shape_text(parts)} elements are not the {extent} of dimension {axis}")
    return _parts(operation.builder, operand, axis, parts)


def _require_few(operation: Operation, parts: int) -> None:
    """GraphError for parts that are only announced."""
    if parts > _MOST_PARTS:
        raise operation.error(f"{parts} parts are more than {_MOST_PARTS}")


_MOST_PARTS: Final = 4096


def _parts(builder: Builder, operand: Value, axis: int, sizes: Sequence[Dimension]) -> list[Value]:
    """Views of so many rows each, one after the other."""
    found = []
    start: Dimension = 0
    for size in sizes:
        starts: list[Dimension] = [0] * len(operand.shape)
        shape = list(operand.shape)
        starts[axis], shape[axis] = start, size
        found.append(builder.slice(operand, starts, [1] * len(shape), shape))
        start = start + size
    return found


OPERATORS: Final = {
    "BroadcastTo": Operator(_broadcast, 2),
    "Concat": Operator(_concat, 1, lists=1),
    "ConcatV2": Operator(_concat, 1, lists=1),
    "ExpandDims": Operator(_expand_dimensions, 2),
    "Identity": Operator(_first, 1),
    "IdentityN": Operator(_all, 0, lists=1),
    "NoOp": Operator(_all, 0),
    "Pack": Operator(_pack, 0, lists=1),
    "Placeholder": Operator(_all, 0),
    "PlaceholderV2": Operator(_all, 0),
    "PlaceholderWithDefault": Operator(_first, 1),
    "PreventGradient": Operator(_first, 1),
    "Reshape": Operator(_reshape, 2),
    "Snapshot": Operator(_first, 1),
    "Split": Operator(_split, 2),
    "SplitV": Operator(_split_by_sizes, 3),
    "Squeeze": Operator(_squeeze, 1),
    "StopGradient": Operator(_first, 1),
    "Tile": Operator(_tile, 2),
    "Transpose": Operator(_transpose, 2),
    "Unpack": Operator(_unpack, 1),
}
