"""Pooling in windows and over whole images, and what normalizes across channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.ir.sizes import Shape
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.onnx.operators.neural.windows import pads_of, per_axis, windows_of
from tc.graph.operators.neural import pooling
from tc.graph.operators.neural.padding import padded
from tc.graph.operators.neural.rounding import real_type
from tc.graph.operators.neural.windows import Windows
from tc.graph.operators.reductions import reduced
from tc.graph.operators.texts import literal


def _windows(operation: Operation) -> Windows:
    kernel = operation.list("kernel_shape")
    if not kernel:
        raise operation.error("the attribute `kernel_shape` is missing")
    return windows_of(operation, operation.operand(0).shape[2:], kernel)


def _average_pool(operation: Operation) -> Sequence[Value]:
    with_padding = bool(operation.integer("count_include_pad", 0))
    return [
        pooling.average_pool(operation.builder, operation.operand(0), _windows(operation), with_padding=with_padding)
    ]


def _max_pool(operation: Operation) -> Sequence[Value]:
    builder, x, windows = operation.builder, operation.operand(0), _windows(operation)
    if len(operation.results) < 2 or not operation.results[1]:
        return [pooling.max_pool(builder, x, windows)]
    column_major = bool(operation.integer("storage_order", 0))
    return pooling.max_pool_with_places(builder, x, windows, column_major=column_major)


def _lp_pool(operation: Operation) -> Sequence[Value]:
    return [pooling.norm_pool(operation.builder, operation.operand(0), _windows(operation), operation.integer("p", 2))]


def _global(operator: str, term: str = "{x}", result: str | None = None) -> Rule:
    """A reduction over all spatial axes."""

    def rule(operation: Operation) -> Sequence[Value]:
        x = operation.operand(0)
        axes = range(2, len(x.shape))
        name = operation.kind.lower()
        return [reduced(operation.builder, name, x, axes, keep=True, operator=operator, term=term, result=result)]

    return rule


def _global_norm(operation: Operation) -> Sequence[Value]:
    term, root = pooling.norm(operation.integer("p", 2))
    return _global("+=!", term, root)(operation)


def _unpool(operation: Operation) -> Sequence[Value]:
    builder, x, places = operation.builder, operation.operand(0), operation.operand(1)
    rank = len(x.shape) - 2
    kernel, strides = operation.list("kernel_shape") or (), per_axis(operation, "strides", rank)
    if len(kernel) != rank:
        raise operation.error(f"`kernel_shape` is {kernel}, and must have {rank} numbers")
    before, after = pads_of(operation, rank)
    spatial = tuple(
        (extent - 1) * strides[axis] + kernel[axis] - before[axis] - after[axis]
        for axis, extent in enumerate(x.shape[2:])
    )
    shape: Shape = (*x.shape[:2], *spatial)
    found = pooling.unpooled(builder, x, places, shape)
    wanted = operation.optional(2)
    if wanted is None:
        return [found]
    more = [size - extent for size, extent in zip(operation.sizes(wanted), shape, strict=True)]
    return [padded(builder, found, [0] * len(shape), more)]


def _local_response(operation: Operation) -> Sequence[Value]:
    x = operation.operand(0)
    numbers = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    alpha, beta, bias = (literal(operation.number(name, value), real_type(x.type)) for name, value in numbers.items())
    return [pooling.local_response(operation.builder, x, operation.integer("size"), alpha, beta, bias)]


RULES: Final[dict[str, Rule]] = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global("+=!", result="{s} / {n}"),
    "GlobalLpPool": _global_norm,
    "GlobalMaxPool": _global("max=!"),
    "LRN": _local_response,
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxUnpool": _unpool,
}
