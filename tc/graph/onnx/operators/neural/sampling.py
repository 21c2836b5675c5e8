"""Sampling at positions that are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.onnx.operators.neural.windows import kernel_of, windows_of
from tc.graph.operators.neural.sampling import PADDINGS, TAPS, Sampling, affine_grid, deformed_convolution, sampled_at


def _grid_sample(operation: Operation) -> Sequence[Value]:
    mode, padding = operation.text("mode", "linear"), operation.text("padding_mode", "zeros")
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    for name, value, known in (("mode", mode, TAPS), ("padding_mode", padding, PADDINGS)):
        if value not in known:
            raise operation.error(f"`{name}` is {value!r}, and must be one of {', '.join(known)}")
    how = Sampling(mode, padding, bool(operation.integer("align_corners", 0)))
    return [sampled_at(operation.builder, operation.operand(0), operation.operand(1), how)]


def _affine_grid(operation: Operation) -> Sequence[Value]:
    shape = operation.sizes(operation.operand(1))[2:]
    aligned = bool(operation.integer("align_corners", 0))
    return [affine_grid(operation.builder, operation.operand(0), shape, aligned=aligned)]


def _deform_conv(operation: Operation) -> Sequence[Value]:
    x, weights, moves = (operation.operand(index) for index in range(3))
    bias, mask = operation.optional(3), operation.optional(4)
    windows = windows_of(operation, x.shape[2:], kernel_of(operation, weights.shape[2:]))
    groups = operation.integer("group", 1), operation.integer("offset_group", 1)
    return [deformed_convolution(operation.builder, x, weights, moves, mask, bias, windows, groups)]


RULES: Final[dict[str, Rule]] = {"AffineGrid": _affine_grid, "DeformConv": _deform_conv, "GridSample": _grid_sample}
