"""Softmax, and what is normalized over layers, groups and batches.

Results that nothing uses are not computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from tc.base.types import computation_type
from tc.graph.ir.values import Value
from tc.graph.operators.neural.normalizations import Normalization, inverse_deviation, normalized, softmax
from tc.graph.operators.pointwise import cast, pointwise
from tc.graph.operators.texts import literal
from tc.torch.fx.operation import Operation, Rule, Rules, extents
from tc.torch.fx.types import array_as

aten: Final = torch.ops.aten


def _softmax(*, logarithm: bool) -> Rule:
    def rule(operation: Operation) -> Value:
        # `half_to_float` says in which type the result is, which is that of the computation, too.
        own = cast(operation.builder, operation.value("self"), operation.type)
        if not own.shape:
            number = "0 * {0}" if logarithm else "1 + 0 * {0}"  # NaN and infinities give NaN
            return pointwise(operation.builder, "softmax", number, [own], own.type)
        return softmax(operation.builder, own, [operation.axis("dim")], logarithm=logarithm)

    return rule


def _layer_norm(operation: Operation) -> Sequence[Value | None]:
    own = operation.value("input")
    rank, count = len(own.shape), len(operation.integers("normalized_shape"))
    axes = tuple(range(rank - count, rank))
    weight, bias = operation.optional("weight"), operation.optional("bias")
    result, statistics = _with_statistics(operation, "layer_norm", own, axes, weight, bias)
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(own.shape))
    return [result, *(one and operation.builder.reshape(one, shape) for one in statistics)]


def _group_norm(operation: Operation) -> Sequence[Value | None]:
    """Channels are divided into groups, which are a dimension of their own."""
    builder, own = operation.builder, operation.value("input")
    batch, channels, elements, groups = (operation.integer(name) for name in ("N", "C", "HxW", "group"))
    width = channels // groups
    grouped = builder.reshape(own, (batch, groups, width, elements))
    scales = [operation.optional(name) for name in ("weight", "bias")]
    weight, bias = (one and builder.reshape(one, (groups, width, 1)) for one in scales)
    result, statistics = _with_statistics(operation, "group_norm", grouped, (2, 3), weight, bias)
    return [builder.reshape(result, own.shape), *statistics]


def _with_statistics(
    operation: Operation, name: str, own: Value, axes: tuple[int, ...], weight: Value | None, bias: Value | None
) -> tuple[Value, list[Value | None]]:
    """What is normalized, with its mean and the inverse of its deviation where something uses them."""
    inverse = inverse_deviation(float(operation.number("eps")), own.type)
    wanted = [operation.wants(1), operation.wants(2)]
    formulas = [
        (formula, type)
        for formula, type, needed in zip(("{m}", "{r}"), operation.types[1:], wanted, strict=True)
        if needed and type is not None
    ]
    how = Normalization(name, axes, inverse, statistics=tuple(formulas))
    result, *found = normalized(operation.builder, how, own, weight, bias)
    rest = iter(found)
    return result, [next(rest) if needed else None for needed in wanted]


def _batch_norm(operation: Operation) -> Sequence[Value | None]:
    """By the statistics of the batch, which are results, too, or by those that were running."""
    if not operation["training"]:
        return _by_running(operation)
    own = operation.value("input")
    rank, wide = len(own.shape), computation_type(own.type)
    axes = tuple(axis for axis in range(rank) if axis != 1)
    inverse = inverse_deviation(float(operation.number("eps")), own.type)
    wants = [operation.wants(result) for result in range(1, len(operation.types))]
    formulas = dict(zip("mrv", (wants[0] or any(wants[2:3]), wants[1], any(wants[3:4])), strict=True))
    names = [name for name, needed in formulas.items() if needed]
    how = Normalization("batch_norm", axes, inverse, statistics=tuple((f"{{{name}}}", wide) for name in names))
    scale, shift = _by_channel(operation, rank)
    result, *statistics = normalized(operation.builder, how, own, scale, shift)
    found = dict(zip(names, statistics, strict=True))
    saved = [
        cast(operation.builder, found[name], type) if needed and type is not None else None
        for name, needed, type in zip("mr", wants, operation.types[1:], strict=False)
    ]
    count = math.prod(extents(own)) / max(extents(own)[1], 1)
    correction = count / (count - 1) if count > 1 else math.inf
    running = [
        _moved(operation, operation.value(before), found[name], factor) if needed else None
        for before, name, factor, needed in zip(
            ("running_mean", "running_var"), "mv", (1.0, correction), wants[2:], strict=False
        )
    ]
    return [result, *saved, *running]


def _moved(operation: Operation, before: Value, now: Value, factor: float) -> Value:
    """A statistic as it runs on."""
    momentum = float(operation.number("momentum"))
    kept, added = literal(1 - momentum, now.type), literal(momentum, now.type)
    new = "{1}" if factor == 1 else f"({{1}} * {literal(factor, now.type)})"
    return pointwise(operation.builder, "running", f"{added} * {new} + {kept} * {{0}}", [before, now], before.type)


def _by_channel(operation: Operation, rank: int) -> list[Value | None]:
    """Weight and bias as columns, which stand at the channels of what has so many dimensions."""
    found = [operation.optional(name) for name in ("weight", "bias")]
    return [one and operation.builder.reshape(one, (*one.shape, *(1,) * (rank - 2))) for one in found]


def _by_running(operation: Operation) -> Sequence[Value | None]:
    """By channel first, so that what is constant is computed once, and goes into the weights of a convolution."""
    builder, own = operation.builder, operation.value("input")
    mean, variance = operation.value("running_mean"), operation.value("running_var")
    weight, bias = operation.optional("weight"), operation.optional("bias")
    wide = computation_type(own.type)
    inverse = inverse_deviation(float(operation.number("eps")), own.type)
    root = inverse.format(v=f"{wide}({{0}})")
    operands, formula = ([variance], root) if weight is None else ([variance, weight], root + " * {1}")
    factor = pointwise(builder, "factor", formula, operands, wide)
    operands, formula = ([mean, factor], "-{0} * {1}") if bias is None else ([mean, factor, bias], "{2} - {0} * {1}")
    addend = pointwise(builder, "addend", formula, operands, wide)
    shape = (*mean.shape, *(1,) * (len(own.shape) - 2))
    columns = [builder.reshape(one, shape) for one in (factor, addend)]
    result = pointwise(builder, "batch_norm", "{0} * {1} + {2}", [own, *columns], own.type)
    types = [type or own.type for type in operation.types[1:3]]
    saved = [builder.constant(array_as(np.zeros((0,)), type), "none") for type in types]
    return [result, *saved, mean, variance][: len(operation.types)]


RULES: Final[Rules] = {
    aten._softmax.default: _softmax(logarithm=False),
    aten._log_softmax.default: _softmax(logarithm=True),
    aten.native_layer_norm.default: _layer_norm,
    aten.native_group_norm.default: _group_norm,
    aten._native_batch_norm_legit_functional.default: _batch_norm,
    aten._native_batch_norm_legit.no_stats: _batch_norm,
    aten._native_batch_norm_legit_no_training.default: _by_running,
}
