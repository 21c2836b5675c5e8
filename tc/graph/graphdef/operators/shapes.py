"""Constants, and what is computed from shapes alone: its contents are numbers and sizes, and no kernel computes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from tc.base.errors import GraphError
from tc.base.types import ScalarType
from tc.graph.graphdef.operation import MOST_FOLDED, Operation, Operator
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension, Shape, Size, elements, shape_text
from tc.graph.ir.values import Value
from tc.graph.operators.extents import extents_of
from tc.graph.operators.matrices import counted
from tc.graph.operators.texts import definition, parameter
from tc.runtime.frameworks.numpy_arrays import numpy_dtype


def sized(sizes: Sequence[Dimension], type: ScalarType) -> np.ndarray:
    """Sizes as contents: numbers of the type, or objects where one is open."""
    if any(isinstance(size, Size) for size in sizes):
        made = np.empty(len(sizes), object)
        made[:] = list(sizes)
        return made
    return np.array(sizes, np.int64).astype(numpy_dtype(type))


def written(builder: Builder, contents: np.ndarray, type: ScalarType) -> Value:
    """Contents with sizes that are open, which a kernel writes."""
    if contents.size > _MOST_WRITTEN:
        raise GraphError(f"{contents.size} numbers depend on sizes that are open; call the graph, or give its sizes")
    extents = extents_of(builder, contents.reshape(-1).tolist())
    statements = [f"Y(i) = {type}({text}) where i in {at}:{at + 1}" for at, text in enumerate(extents.texts)]
    text = definition("sizes", extents.parameters, ["Y"], statements)
    (found,) = builder.call(text, *extents.operands)
    return builder.reshape(found, contents.shape)


_MOST_WRITTEN: Final = 256


def _constant(operation: Operation) -> Sequence[Value]:
    """The tensor; of one that repeats its last value, only those values are kept that there are."""
    tensor, builder, name = operation.tensor("value"), operation.builder, operation.node.name
    if tensor.is_whole or tensor.count <= MOST_FOLDED:
        return [builder.constant(tensor.array(), name)]
    values = builder.constant(tensor.values, f"{name}/values")
    if len(tensor.values) == 1:
        return [builder.expand(builder.reshape(values, ()), tensor.shape)]
    statement = f"Y(i) = A(min(i, K - 1)) where i in 0:{tensor.count}"
    text = definition("repeat_last", [parameter(tensor.type, ["K"], "A")], ["Y"], [statement])
    return [builder.reshape(operation.one(text, values), tensor.shape)]


def _shape(operation: Operation) -> Sequence[Value]:
    type = operation.type("out_type", ScalarType.INT32)
    return [operation.known(sized(operand.shape, type), type) for operand in operation.operands]


def _scalar(operation: Operation, size: Dimension) -> Sequence[Value]:
    type = operation.type("out_type", ScalarType.INT32)
    return [operation.known(sized([size], type).reshape(()), type)]


def _rank(operation: Operation) -> Sequence[Value]:
    return _scalar(operation, len(operation.operands[0].shape))


def _size(operation: Operation) -> Sequence[Value]:
    return _scalar(operation, elements(operation.operands[0].shape))


def _broadcast_gradient(operation: Operation) -> Sequence[Value]:
    """Which axes each of two operands was repeated along when they were broadcast."""
    type = operation.operands[0].type
    found = repeated_axes(operation.sizes(0), operation.sizes(1), operation.node.place)
    return [operation.known(sized(axes, type), type) for axes in found]


def repeated_axes(left: Shape, right: Shape, what: str) -> tuple[list[int], list[int]]:
    """The axes of the broadcast shape along which each is repeated, or both have one element."""
    if left == right:
        return [], []
    rank = max(len(left), len(right))
    first, second = ((1,) * (rank - len(shape)) + shape for shape in (left, right))
    for a, b in zip(first, second, strict=True):
        if isinstance(a, int) and isinstance(b, int) and 1 not in (a, b) and a != b:
            raise GraphError(
                f"{what}: the shapes ({shape_text(left)}) and ({shape_text(right)}) cannot be broadcast to one"
            )
    pairs = list(enumerate(zip(first, second, strict=True)))
    return [axis for axis, (a, _) in pairs if a == 1], [axis for axis, (_, b) in pairs if b == 1]


def _range(operation: Operation) -> Sequence[Value]:
    """Numbers from the first operand on, the second excluded, by steps of the third."""
    for index in range(3):
        operation.operand(index, rank=0)
    type = operation.operands[0].type
    start, limit, step = (operation.contents(index).reshape(-1)[0] for index in range(3))
    if not isinstance(step, Size) and step == 0:
        raise operation.error("the step of a range must not be 0")
    count: Dimension
    if type.is_floating:
        count = math.ceil((float(limit) - float(start)) / float(step))
    else:
        first, last, by = operation.sizes(0)[0], operation.sizes(1)[0], operation.whole(2)
        count = (last - first + by - 1) // by if by > 0 else (first - last - by - 1) // -by
    count = max(count, 0) if isinstance(count, int) else count
    return [counted(operation.builder, operation.operands[0], operation.operands[2], count)]


def _filled(operation: Operation) -> Sequence[Value]:
    return [operation.builder.expand(operation.operand(1, rank=0), operation.shape(0))]


def _alike(number: int) -> Operator:
    def rule(operation: Operation) -> Sequence[Value]:
        (operand,) = operation.operands
        value = operation.builder.constant(np.array(number, numpy_dtype(operand.type)), operation.node.name)
        return [operation.builder.expand(value, operand.shape)]

    return Operator(rule, 1)


OPERATORS: Final = {
    "BroadcastGradientArgs": Operator(_broadcast_gradient, 2),
    "Const": Operator(_constant, 0),
    "Fill": Operator(_filled, 2),
    "OnesLike": _alike(1),
    "Range": Operator(_range, 3),
    "Rank": Operator(_rank, 1),
    "Shape": Operator(_shape, 1),
    "ShapeN": Operator(_shape, 0, lists=1),
    "Size": Operator(_size, 1),
    "VariableShape": Operator(_shape, 1),
    "ZerosLike": _alike(0),
}
