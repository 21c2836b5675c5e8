"""Matrix products, and biases of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.graphdef.operation import Operation, Operator
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.products import product
from tc.graph.operators.reductions import reduced


def _matmul(operation: Operation) -> Sequence[Value]:
    left, right = operation.operand(0, rank=2), operation.operand(1, rank=2)
    return [_product(operation, left, right, "transpose_a", "transpose_b")]


def _batched(operation: Operation) -> Sequence[Value]:
    left, right = operation.operands
    if min(len(left.shape), len(right.shape)) < 2:
        raise operation.error("operands must have 2 dimensions at least")
    return [_product(operation, left, right, "adj_x", "adj_y")]


def _product(operation: Operation, left: Value, right: Value, turn_left: str, turn_right: str) -> Value:
    builder = operation.builder
    left = _transposed(builder, left) if operation.flag(turn_left, False) else left
    right = _transposed(builder, right) if operation.flag(turn_right, False) else right
    return product(builder, left, right)


def _transposed(builder: Builder, value: Value) -> Value:
    """With the last two dimensions in the other order, which moves nothing."""
    *batch, row, column = range(len(value.shape))
    return builder.permute(value, (*batch, column, row))


def channel_axis(operation: Operation, rank: int) -> int:
    """The dimension of the channels in the layout that the attribute says."""
    layout = operation.text("data_format", "NHWC")
    if layout not in _LAYOUTS:
        raise operation.error(f"the layout `{layout}` is not supported; supported: {', '.join(_LAYOUTS)}")
    if rank < 2 and operation.kind != "BiasAddGrad":
        raise operation.error(f"operand 0 must have 2 dimensions at least, and has {rank}")
    return 1 if layout.startswith("NC") else rank - 1


_LAYOUTS: Final = ("NHWC", "NCHW", "NDHWC", "NCDHW")


def _bias_add(operation: Operation) -> Sequence[Value]:
    operand, bias = operation.operand(0), operation.operand(1, rank=1)
    rank = len(operand.shape)
    after = rank - 1 - channel_axis(operation, rank)
    bias = operation.builder.reshape(bias, (*bias.shape, *(1,) * after))
    return [pointwise(operation.builder, "bias_add", "{0} + {1}", [operand, bias], operand.type)]


def _bias_gradient(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    rank = len(operand.shape)
    channel = channel_axis(operation, rank)
    axes = [axis for axis in range(rank) if axis != channel]
    return [reduced(operation.builder, "bias_gradient", operand, axes, keep=False) if axes else operand]


OPERATORS: Final = {
    "BatchMatMul": Operator(_batched, 2),
    "BatchMatMulV2": Operator(_batched, 2),
    "BiasAdd": Operator(_bias_add, 2),
    "BiasAddGrad": Operator(_bias_gradient, 1),
    "BiasAddV1": Operator(_bias_add, 2),
    "MatMul": Operator(_matmul, 2),
}
