"""Convolutions, direct and transposed, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from tc.graph.ir.values import Value
from tc.graph.operators.neural.convolution import (
    convolution,
    convolution_of_blocks,
    transposed_convolution,
    weight_gradient,
)
from tc.graph.operators.neural.windows import Window, Windows, explicit_window, span, spatial_sizes
from tc.graph.operators.reductions import reduced
from tc.torch.fx.operation import Operation, Rules, extents

aten: Final = torch.ops.aten


def per_axis(operation: Operation, name: str, rank: int) -> list[int]:
    """An argument that is a number for each axis, or one for all."""
    found = operation.integers(name)
    return found * rank if len(found) == 1 else found


def _windows(operation: Operation, counts: Sequence[int]) -> Windows:
    """The windows of a convolution with the weights, so many of them along each axis."""
    kernel = extents(operation.value("weight"))[2:]
    rank = len(kernel)
    given = (per_axis(operation, name, rank) for name in ("stride", "dilation", "padding"))
    found = []
    for size, count, extent, stride, dilation, before in zip(spatial_sizes(rank), counts, kernel, *given, strict=True):
        plain = explicit_window(size, extent, stride, dilation, before, before)
        # What an output padding adds to a result is in no window.
        beyond = plain.padded or operation["transposed"]
        found.append(Window(extent, stride, dilation, before, before, beyond, str(count)))
    return Windows(tuple(found))


def _result(operation: Operation) -> list[int]:
    """The extents of the result along the axes that windows move over."""
    spatial, kernel = (extents(operation.value(name))[2:] for name in ("input", "weight"))
    names = ("stride", "padding", "dilation", "output_padding")
    found = []
    for extent, taps, stride, padding, dilation, more in zip(
        spatial, kernel, *(per_axis(operation, name, len(kernel)) for name in names), strict=True
    ):
        reach = span(taps, dilation) - 2 * padding
        if operation["transposed"]:
            found.append((extent - 1) * stride + reach + more)
        else:
            found.append((extent - reach) // stride + 1)
    return found


def _convolution(operation: Operation) -> Value:
    x, weights, bias = operation.value("input"), operation.value("weight"), operation.optional("bias")
    result = _result(operation)
    groups = operation.integer("groups")
    if operation["transposed"]:
        windows = _windows(operation, extents(x)[2:])
        counts = [str(extent) for extent in result]
        return transposed_convolution(operation.builder, x, weights, bias, windows, counts, groups)
    return convolution(operation.builder, x, weights, bias, _windows(operation, result), groups)


def _backward(operation: Operation) -> Sequence[Value | None]:
    wanted = operation["output_mask"]
    gradients = (_input_gradient, _weight_gradient, _bias_gradient)
    return [gradient(operation) if want else None for gradient, want in zip(gradients, wanted, strict=True)]


def _input_gradient(operation: Operation) -> Value:
    """The adjoint of the operator: a transposed convolution of a direct one, and the other way round."""
    gradient, weights = operation.value("grad_output"), operation.value("weight")
    spatial, groups = extents(operation.value("input"))[2:], operation.integer("groups")
    if operation["transposed"]:
        windows = _windows(operation, spatial)
        if windows.are_blocks(extents(gradient)[2:]):
            return convolution_of_blocks(operation.builder, gradient, weights, windows, groups)
        return convolution(operation.builder, gradient, weights, None, windows, groups)
    windows = _windows(operation, extents(gradient)[2:])
    counts = [str(extent) for extent in spatial]
    return transposed_convolution(operation.builder, gradient, weights, None, windows, counts, groups)


def _weight_gradient(operation: Operation) -> Value:
    image, windowed = operation.value("input"), operation.value("grad_output")
    if operation["transposed"]:
        image, windowed = windowed, image
    kernel = extents(operation.value("weight"))
    windows, groups = _windows(operation, extents(windowed)[2:]), operation.integer("groups")
    return weight_gradient(operation.builder, image, windowed, windows, kernel, groups)


def _bias_gradient(operation: Operation) -> Value:
    gradient = operation.value("grad_output")
    axes = [0, *range(2, len(gradient.shape))]
    return reduced(operation.builder, "conv_bias", gradient, axes, keep=False)


RULES: Final[Rules] = {aten.convolution.default: _convolution, aten.convolution_backward.default: _backward}
