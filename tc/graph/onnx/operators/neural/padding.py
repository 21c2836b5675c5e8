"""Padding and cropping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tc.graph.ir.sizes import Dimension
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.onnx.tensors import dtype_of
from tc.graph.operators.neural.padding import padded


def _pad(operation: Operation) -> Sequence[Value]:
    x = operation.operand(0)
    rank = len(x.shape)
    mode = operation.text("mode", "constant")
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise operation.error(f"`mode` is {mode!r}, and must be constant, edge, reflect or wrap")
    amounts: Sequence[Dimension]
    if operation.opset < 11:
        amounts, axes = operation.list("pads") or (), None
        number = operation.number("value", 0.0)
        value = operation.builder.constant(np.array(number, dtype_of(x.type)), "value") if number else None
    else:
        amounts, value = operation.sizes(operation.operand(1)), operation.optional(2)
        axes = operation.axes(3, rank)
    axes = tuple(range(rank)) if axes is None else axes
    if len(amounts) != 2 * len(axes):
        raise operation.error(f"there are {len(amounts)} pads for {len(axes)} axes, and must be two for each")
    before: list[Dimension] = [0] * rank
    after: list[Dimension] = [0] * rank
    for place, axis in enumerate(axes):
        before[axis], after[axis] = amounts[place], amounts[len(axes) + place]
    return [padded(operation.builder, x, before, after, mode, value)]


def _center(operation: Operation) -> Sequence[Value]:
    """As many elements more or fewer on both sides; an odd one is on the right."""
    x = operation.operand(0)
    axes = operation.axes(2, len(x.shape)) or tuple(range(len(x.shape)))
    before: list[Dimension] = [0] * len(x.shape)
    after: list[Dimension] = [0] * len(x.shape)
    for axis, size in zip(axes, operation.sizes(operation.operand(1)), strict=True):
        more = size - x.shape[axis]
        half = -(-more // 2) if more < 0 else more // 2
        before[axis], after[axis] = half, more - half
    return [padded(operation.builder, x, before, after)]


RULES: Final[dict[str, Rule]] = {"CenterCropPad": _center, "Pad": _pad}
