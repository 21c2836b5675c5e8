"""Operators that write where indices say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.scatters import REDUCTIONS, scattered_elements, scattered_points, scattered_rows


def _scatter_elements(operation: Operation) -> Sequence[Value]:
    operand, indices, updates = (operation.operand(place) for place in range(3))
    ranks = {len(value.shape) for value in (operand, indices, updates)}
    if len(ranks) > 1:
        raise operation.error("the operand, the indices and the updates must have as many dimensions as each other")
    axis = operation.axis(operation.integer("axis", 0), len(operand.shape))
    return [scattered_elements(operation.builder, operand, indices, updates, axis, _reduction(operation))]


def _scatter_points(operation: Operation) -> Sequence[Value]:
    operand, indices, updates = (operation.operand(place) for place in range(3))
    return [scattered_points(operation.builder, operand, indices, updates, _reduction(operation))]


def _reduction(operation: Operation) -> str | None:
    """What becomes of an element and its updates; None where they replace it."""
    reduction = operation.text("reduction", "none")
    if reduction not in ("none", *REDUCTIONS):
        raise operation.error(f"the reduction `{reduction}` is not known; use none, {', '.join(REDUCTIONS)}")
    return None if reduction == "none" else reduction


def _tensor_scatter(operation: Operation) -> Sequence[Value]:
    cache, updates, starts = operation.operand(0), operation.operand(1), operation.optional(2)
    axis = operation.axis(operation.integer("axis", -2), len(cache.shape))
    if axis == 0:
        raise operation.error("axis 0 is that of the batches; give the axis of the rows")
    mode = operation.text("mode", "linear")
    if mode not in ("linear", "circular"):
        raise operation.error(f"the mode `{mode}` is not known; use linear or circular")
    return [scattered_rows(operation.builder, cache, updates, starts, axis, wraps=mode == "circular")]


RULES: Final[dict[str, Rule]] = {
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_points,
    "TensorScatter": _tensor_scatter,
}
