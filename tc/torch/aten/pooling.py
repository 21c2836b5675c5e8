"""Pooling in windows and to a given shape, and the gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from tc.graph.ir.values import Value
from tc.graph.operators.neural import adaptive_pooling, planes
from tc.graph.operators.neural.pooling import average_pool, max_pool
from tc.graph.operators.neural.windows import Window, Windows, span, spatial_sizes
from tc.torch.aten.convolutions import per_axis
from tc.torch.fx.operation import Operation, Rule, Rules, UnclaimedError, extents

aten: Final = torch.ops.aten


def _batched(operation: Operation, value: Value, rank: int) -> Value:
    """The tensor as (N, C, ...), with that many axes behind."""
    return operation.builder.reshape(value, (*[1] * (rank + 2 - len(value.shape)), *value.shape))


def _like(operation: Operation, found: Value, rank: int) -> Value:
    """The tensor with a batch if ``self`` has one."""
    missing = rank + 2 - len(operation.value("self").shape)
    return operation.builder.reshape(found, found.shape[missing:])


def _windows(operation: Operation, rank: int) -> tuple[Windows, list[int]]:
    """The windows over ``self``, and how many there are along each axis."""
    spatial = extents(operation.value("self"))[-rank:]
    kernel = per_axis(operation, "kernel_size", rank)
    strides = per_axis(operation, "stride", rank) if operation["stride"] else kernel
    dilations = per_axis(operation, "dilation", rank) if operation.has("dilation") else [1] * rank
    paddings, up = per_axis(operation, "padding", rank), bool(operation["ceil_mode"])
    found, counts = [], []
    axes = zip(spatial_sizes(rank), spatial, kernel, strides, dilations, paddings, strict=True)
    for _, extent, taps, stride, dilation, padding in axes:
        rest = extent + 2 * padding - span(taps, dilation)
        count = (rest + (stride - 1 if up else 0)) // stride + 1
        if up and (count - 1) * stride >= extent + padding:  # the last window begins in the axis or before it
            count -= 1
        beyond = (count - 1) * stride > rest
        found.append(Window(taps, stride, dilation, padding, padding, beyond, str(count)))
        counts.append(count)
    return Windows(tuple(found)), counts


def _max_pool(rank: int) -> Rule:
    def rule(operation: Operation) -> Sequence[Value | None]:
        x = _batched(operation, operation.value("self"), rank)
        windows, counts = _windows(operation, rank)
        if not operation.wants(1):
            return [_like(operation, max_pool(operation.builder, x, windows), rank), None]
        made = planes.max_pool_in_planes(operation.builder, x, windows, counts)
        return [_like(operation, found, rank) for found in made]

    return rule


def _max_pool_gradient(rank: int, *, windowed: bool = True) -> Rule:
    """``windowed``: places are in windows of a size; those of adaptive pools have sizes of their own."""

    def rule(operation: Operation) -> Value:
        spatial = extents(operation.value("self"))[-rank:]
        gradient, places = operation.value("grad_output"), operation.value("indices")
        windows = _windows(operation, rank)[0] if windowed else None
        return planes.max_pool_gradient(operation.builder, gradient, places, spatial, windows)

    return rule


def _average_pool(rank: int) -> Rule:
    def rule(operation: Operation) -> Value:
        x = _batched(operation, operation.value("self"), rank)
        windows, _ = _windows(operation, rank)
        with_padding, divisor = bool(operation["count_include_pad"]), operation["divisor_override"]
        found = average_pool(operation.builder, x, windows, with_padding=with_padding, divisor=divisor)
        return _like(operation, found, rank)

    return rule


def _average_pool_gradient(rank: int) -> Rule:
    def rule(operation: Operation) -> Value:
        gradient = _batched(operation, operation.value("grad_output"), rank)
        windows, _ = _windows(operation, rank)
        with_padding, divisor = bool(operation["count_include_pad"]), operation["divisor_override"]
        spatial = extents(operation.value("self"))[-rank:]
        found = planes.average_pool_gradient(
            operation.builder, gradient, windows, spatial, with_padding=with_padding, divisor=divisor
        )
        return _like(operation, found, rank)

    return rule


def _spans(operation: Operation, counts: Sequence[int]) -> adaptive_pooling.Spans:
    spatial = extents(operation.value("self"))[-len(counts) :]
    if 0 in (*spatial, *counts):
        raise UnclaimedError("pools axes without elements")
    return adaptive_pooling.Spans(spatial, tuple(counts))


def _adaptive(rank: int) -> Rule:
    def rule(operation: Operation) -> Value:
        x = _batched(operation, operation.value("self"), rank)
        spans = _spans(operation, per_axis(operation, "output_size", rank))
        return _like(operation, adaptive_pooling.adaptive_average_pool(operation.builder, x, spans), rank)

    return rule


def _adaptive_gradient(rank: int) -> Rule:
    def rule(operation: Operation) -> Value:
        gradient = _batched(operation, operation.value("grad_output"), rank)
        spans = _spans(operation, extents(gradient)[2:])
        found = adaptive_pooling.adaptive_average_pool_gradient(operation.builder, gradient, spans)
        return _like(operation, found, rank)

    return rule


def _adaptive_max(rank: int) -> Rule:
    def rule(operation: Operation) -> Sequence[Value]:
        x = _batched(operation, operation.value("self"), rank)
        spans = _spans(operation, per_axis(operation, "output_size", rank))
        made = adaptive_pooling.adaptive_max_pool(operation.builder, x, spans)
        return [_like(operation, found, rank) for found in made]

    return rule


RULES: Final[Rules] = {
    aten.max_pool2d_with_indices.default: _max_pool(2),
    aten.max_pool3d_with_indices.default: _max_pool(3),
    aten.max_pool2d_with_indices_backward.default: _max_pool_gradient(2),
    aten.max_pool3d_with_indices_backward.default: _max_pool_gradient(3),
    aten.avg_pool2d.default: _average_pool(2),
    aten.avg_pool3d.default: _average_pool(3),
    aten.avg_pool2d_backward.default: _average_pool_gradient(2),
    aten.avg_pool3d_backward.default: _average_pool_gradient(3),
    aten._adaptive_avg_pool2d.default: _adaptive(2),
    aten._adaptive_avg_pool3d.default: _adaptive(3),
    aten._adaptive_avg_pool2d_backward.default: _adaptive_gradient(2),
    aten._adaptive_avg_pool3d_backward.default: _adaptive_gradient(3),
    aten.adaptive_max_pool2d.default: _adaptive_max(2),
    aten.adaptive_max_pool3d.default: _adaptive_max(3),
    aten.adaptive_max_pool2d_backward.default: _max_pool_gradient(2, windowed=False),
    aten.adaptive_max_pool3d_backward.default: _max_pool_gradient(3, windowed=False),
}
