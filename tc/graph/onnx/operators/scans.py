"""Running sums and products, sorting, and reversed sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.scans import reversed_sequences, scanned
from tc.graph.operators.sorting import top


def _running(operator: str) -> Rule:
    def rule(operation: Operation) -> Sequence[Value]:
        operand = operation.operand(0)
        (axis,) = operation.integers(operation.operand(1))
        exclusive, reverse = (bool(operation.integer(name, 0)) for name in ("exclusive", "reverse"))
        along = operation.axis(axis, len(operand.shape))
        return [scanned(operation.builder, operand, along, operator, exclusive=exclusive, reverse=reverse)]

    return rule


def _top(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    axis = operation.axis(operation.integer("axis", -1), len(operand.shape))
    count = operation.integer("k") if operation.opset < 10 else operation.integers(operation.operand(1))[0]
    extent = operand.shape[axis]
    if count < 0 or (isinstance(extent, int) and count > extent):
        raise operation.error(f"k is {count}; it must be at least 0 and at most {extent}, the extent of axis {axis}")
    return top(operation.builder, operand, count, axis, largest=bool(operation.integer("largest", 1)))


def _reverse_sequence(operation: Operation) -> Sequence[Value]:
    operand, lengths = operation.operand(0), operation.operand(1)
    along = operation.axis(operation.integer("time_axis", 0), len(operand.shape))
    batches = operation.axis(operation.integer("batch_axis", 1), len(operand.shape))
    if along == batches:
        raise operation.error(f"`time_axis` and `batch_axis` are both {along}; give two axes")
    return [reversed_sequences(operation.builder, operand, lengths, along=along, batches=batches)]


RULES: Final[dict[str, Rule]] = {
    "CumProd": _running("*=!"),
    "CumSum": _running("+=!"),
    "ReverseSequence": _reverse_sequence,
    "TopK": _top,
}
