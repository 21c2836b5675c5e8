"""Convolutions, direct and transposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tc.graph.ir.sizes import Dimension, number
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.onnx.operators.neural.windows import kernel_of, pads_of, per_axis, windows_of
from tc.graph.operators.neural.convolution import causal_convolution, convolution, transposed_convolution
from tc.graph.operators.neural.integer_convolution import Bytes, Scaling, integer_convolution
from tc.graph.operators.neural.windows import Windows, affine, explicit_window, offset, span, spatial_sizes


def _conv(operation: Operation) -> Sequence[Value]:
    x, weights = operation.operand(0), operation.operand(1)
    windows = windows_of(operation, x.shape[2:], kernel_of(operation, weights.shape[2:]))
    groups = operation.integer("group", 1)
    return [convolution(operation.builder, x, weights, operation.optional(2), windows, groups)]


def _conv_transpose(operation: Operation) -> Sequence[Value]:
    x, weights = operation.operand(0), operation.operand(1)
    windows, counts = _transposed(operation, x.shape[2:], kernel_of(operation, weights.shape[2:]))
    groups = operation.integer("group", 1)
    return [transposed_convolution(operation.builder, x, weights, operation.optional(2), windows, counts, groups)]


def _transposed(operation: Operation, extents: Sequence[Dimension], kernel: Sequence[int]) -> tuple[Windows, list[str]]:
    """The windows of the convolution whose adjoint it is, and the extents of the result, numbers if they are known."""
    rank = len(extents)
    strides, dilations = per_axis(operation, "strides", rank), per_axis(operation, "dilations", rank)
    added = operation.list("output_padding") or (0,) * rank
    mode, wanted = operation.text("auto_pad", "NOTSET"), operation.list("output_shape")
    before, after = pads_of(operation, rank) if mode == "NOTSET" else ((0,) * rank, (0,) * rank)
    found, counts = [], []
    for axis, size in enumerate(spatial_sizes(rank)):
        stride, dilation = strides[axis], dilations[axis]
        slack = added[axis] + span(kernel[axis], dilation) - stride  # the result has `stride * size + slack` unpadded
        first, extent = before[axis], extents[axis]
        if wanted:  # some models give the extents of batches and channels, too
            known = number(extent, f"{operation.builder.origin}: an extent beside `output_shape`")
            more = wanted[-rank:][axis] - stride * known
            first = _ahead(slack - more, mode)
        elif mode in ("SAME_UPPER", "SAME_LOWER"):
            first, more = _ahead(slack, mode), 0
        else:
            more = slack - first - after[axis]
        window = explicit_window(size, kernel[axis], stride, dilation, first)
        if isinstance(extent, int):
            counts.append(str(stride * extent + more))
            window = replace(window, count=str(extent))
        else:
            counts.append(f"{affine((stride, size))}{offset(more)}")
        found.append(window)
    return Windows(tuple(found)), counts


def _ahead(padding: int, mode: str) -> int:
    """How much of the padding is before the axis."""
    padding = max(padding, 0)
    return padding // 2 if mode == "SAME_UPPER" else padding - padding // 2


def _conv_integer(operation: Operation) -> Sequence[Value]:
    x, weights = operation.operand(0), operation.operand(1)
    windows = windows_of(operation, x.shape[2:], kernel_of(operation, weights.shape[2:]))
    image, kernel = Bytes(x, operation.optional(2)), Bytes(weights, operation.optional(3))
    return [integer_convolution(operation.builder, image, kernel, windows, operation.integer("group", 1))]


def _conv_scaled(operation: Operation) -> Sequence[Value]:
    x, weights = operation.operand(0), operation.operand(3)
    windows = windows_of(operation, x.shape[2:], kernel_of(operation, weights.shape[2:]))
    image_scale, weights_scale, scale, zero = (operation.operand(index) for index in (1, 4, 6, 7))
    scaling = Scaling(image_scale, weights_scale, scale, zero, operation.optional(8))
    image, kernel = Bytes(x, operation.operand(2)), Bytes(weights, operation.operand(5))
    return [integer_convolution(operation.builder, image, kernel, windows, operation.integer("group", 1), scaling)]


def _causal(operation: Operation) -> Sequence[Value]:
    activation = operation.text("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise operation.error(f"`activation` is {activation!r}, and must be none, silu or swish")
    x, weights = operation.operand(0), operation.operand(1)
    bias, state = operation.optional(2), operation.optional(3)
    return causal_convolution(operation.builder, x, weights, bias, state, gated=activation != "none")


RULES: Final[dict[str, Rule]] = {
    "CausalConvWithState": _causal,
    "Conv": _conv,
    "ConvInteger": _conv_integer,
    "ConvTranspose": _conv_transpose,
    "QLinearConv": _conv_scaled,
}
