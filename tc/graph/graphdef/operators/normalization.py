"""Normalization by statistics of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.graphdef.operation import Operation, Operator
from tc.graph.graphdef.operators.products import channel_axis
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.texts import literal


def _batch_norm(operation: Operation) -> Sequence[Value]:
    """With given mean and variance, which are results, too."""
    if operation.flag("is_training", True):
        raise operation.error("batch normalization in training is not supported; export the graph for inference")
    operand = operation.operand(0)
    statistics = [operation.operand(index, rank=1) for index in range(1, 5)]
    after = len(operand.shape) - 1 - channel_axis(operation, len(operand.shape))
    rows = [operation.builder.reshape(value, (*value.shape, *(1,) * after)) for value in statistics]
    epsilon = literal(operation.number("epsilon", 1e-4), statistics[0].type)
    expression = f"({{0}} - {{3}}) * ({{1}} / sqrt({{4}} + {epsilon})) + {{2}}"
    found = pointwise(operation.builder, "batch_norm", expression, [operand, *rows], operand.type)
    _, _, mean, variance = statistics
    return [found, mean, variance, mean, variance]


OPERATORS: Final = {
    "FusedBatchNorm": Operator(_batch_norm, 5),
    "FusedBatchNormV2": Operator(_batch_norm, 5),
    "FusedBatchNormV3": Operator(_batch_norm, 5),
}
