"""Reductions over axes, which are contents of an operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType
from tc.graph.graphdef.operation import Operation, Operator
from tc.graph.ir.values import Value
from tc.graph.operators.gathers import arg_reduced
from tc.graph.operators.pointwise import cast
from tc.graph.operators.reductions import reduced


def _reduction(operator: str, term: str = "{x}", result: str | None = None) -> Operator:
    def rule(operation: Operation) -> Sequence[Value]:
        operand = operation.operand(0)
        rank = len(operand.shape)
        axes = sorted({operation.axis(axis, rank) for axis in operation.integers(1)})
        if not axes:
            return [operand]
        keep, name = operation.flag("keep_dims", False), operation.kind.lower()
        return [reduced(operation.builder, name, operand, axes, keep=keep, operator=operator, term=term, result=result)]

    return Operator(rule, 2)


def _half_of_squares(operation: Operation) -> Sequence[Value]:
    (operand,) = operation.operands
    axes = range(len(operand.shape))
    return [reduced(operation.builder, "l2_loss", operand, axes, keep=False, term="{x} * {x}", result="{s} / 2")]


def _arg_extreme(*, greatest: bool) -> Operator:
    def rule(operation: Operation) -> Sequence[Value]:
        operand = operation.operand(0)
        axis = operation.axis(operation.whole(1), len(operand.shape))
        ordered = cast(operation.builder, operand, ScalarType.UINT8) if operand.type is ScalarType.BOOL else operand
        type = operation.type("output_type", ScalarType.INT64)
        return [arg_reduced(operation.builder, ordered, axis, greatest=greatest, type=type)]

    return Operator(rule, 2)


OPERATORS: Final = {
    "All": _reduction("min=!", "int32({x})", "{s} > 0"),
    "Any": _reduction("max=!", "int32({x})", "{s} > 0"),
    "ArgMax": _arg_extreme(greatest=True),
    "ArgMin": _arg_extreme(greatest=False),
    "L2Loss": Operator(_half_of_squares, 1),
    "Max": _reduction("max=!"),
    "Mean": _reduction("+=!", "{x}", "{s} / {n}"),
    "Min": _reduction("min=!"),
    "Prod": _reduction("*=!"),
    "Sum": _reduction("+=!"),
}
