"""Operators that read where indices say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.gathers import arg_reduced, gathered, gathered_elements, gathered_points, one_hot


def _gather(operation: Operation) -> Sequence[Value]:
    operand, indices = operation.operand(0), operation.operand(1)
    axis = operation.axis(operation.integer("axis", 0), len(operand.shape))
    return [gathered(operation.builder, operand, indices, axis)]


def _gather_elements(operation: Operation) -> Sequence[Value]:
    operand, indices = operation.operand(0), operation.operand(1)
    if len(indices.shape) != len(operand.shape):
        raise operation.error(
            f"the indices have {len(indices.shape)} dimensions and the operand {len(operand.shape)}; give both as many"
        )
    axis = operation.axis(operation.integer("axis", 0), len(operand.shape))
    return [gathered_elements(operation.builder, operand, indices, axis)]


def _gather_points(operation: Operation) -> Sequence[Value]:
    return [
        gathered_points(
            operation.builder, operation.operand(0), operation.operand(1), operation.integer("batch_dims", 0)
        )
    ]


def _arg(*, greatest: bool) -> Rule:
    def rule(operation: Operation) -> Sequence[Value]:
        operand = operation.operand(0)
        axis = operation.axis(operation.integer("axis", 0), len(operand.shape))
        last, keep = bool(operation.integer("select_last_index", 0)), bool(operation.integer("keepdims", 1))
        return [arg_reduced(operation.builder, operand, axis, greatest=greatest, last=last, keep=keep)]

    return rule


def _one_hot(operation: Operation) -> Sequence[Value]:
    indices, depth, values = (operation.operand(place) for place in range(3))
    axis = operation.axis(operation.integer("axis", -1), len(indices.shape) + 1)
    (count,) = operation.integers(depth)
    if count < 0:
        raise operation.error(f"the depth is {count}; it must be 0 at least")
    return [one_hot(operation.builder, indices, count, axis, values)]


RULES: Final[dict[str, Rule]] = {
    "ArgMax": _arg(greatest=True),
    "ArgMin": _arg(greatest=False),
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_points,
    "OneHot": _one_hot,
}
