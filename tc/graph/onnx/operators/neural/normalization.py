"""Normalizations over groups, rows and batches, and softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tc.base.types import computation_type
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.neural.normalizations import (
    Normalization,
    UnitNorm,
    hardmax,
    inverse_deviation,
    normalized,
    softmax,
)
from tc.graph.operators.pointwise import cast, pointwise
from tc.graph.operators.texts import literal

_EPSILON: Final = 1e-5


def _along(function: Callable[[Builder, Value, Sequence[int]], Value]) -> Rule:
    """A function of one axis; before opset 13 of the axis and all after it, as if they were one."""

    def rule(operation: Operation) -> Sequence[Value]:
        operand = operation.operand(0)
        rank = len(operand.shape)
        axis = operation.axis(operation.integer("axis", -1 if operation.opset >= 13 else 1), rank)
        axes = (axis,) if operation.opset >= 13 else tuple(range(axis, rank))
        return [function(operation.builder, operand, axes)]

    return rule


def _log_softmax(builder: Builder, operand: Value, axes: Sequence[int]) -> Value:
    return softmax(builder, operand, axes, logarithm=True)


def _hardmax(builder: Builder, operand: Value, axes: Sequence[int]) -> Value:
    if len(axes) == 1:
        return hardmax(builder, operand, axes[0])
    rows = elements(operand.shape[: axes[0]])
    flat = builder.reshape(operand, (rows, elements(operand.shape[axes[0] :])))
    return builder.reshape(hardmax(builder, flat, 1), operand.shape)


def _layer_normalization(operation: Operation) -> Sequence[Value]:
    operand, builder = operation.operand(0), operation.builder
    rank = len(operand.shape)
    first = operation.axis(operation.integer("axis", -1), rank)
    stash = operation.type_of(operation.integer("stash_type", 1))
    wanted = [bool(name) for name in [*operation.results[1:], "", ""]][:2]
    statistics = [(formula, stash) for formula, needed in zip(("{m}", "{r}"), wanted, strict=True) if needed]
    inverse = inverse_deviation(operation.number("epsilon", _EPSILON), operand.type)
    how = Normalization("layer_norm", tuple(range(first, rank)), inverse, statistics=tuple(statistics))
    result, *others = normalized(builder, how, operand, operation.operand(1), operation.optional(2))
    shape = (*operand.shape[:first], *(1,) * (rank - first))
    rest = iter([builder.reshape(other, shape) for other in others])
    # A result that is not wanted has a place all the same, where the value does not matter.
    return [result, *(next(rest) if needed else result for needed in wanted)]


def _rms_normalization(operation: Operation) -> Sequence[Value]:
    operand, scale = operation.operand(0), operation.operand(1)
    rank = len(operand.shape)
    axes = tuple(range(operation.axis(operation.integer("axis", -1), rank), rank))
    inverse = inverse_deviation(operation.number("epsilon", _EPSILON), operand.type)
    how = Normalization("rms_norm", axes, inverse, centred=False)
    return normalized(operation.builder, how, operand, scale, type=scale.type)


def _by_channel(operation: Operation, value: Value, rank: int) -> Value:
    """A value with an element for each channel, so that it is broadcast to a tensor of this rank."""
    return operation.builder.reshape(value, (*value.shape, *(1,) * max(rank - 2, 0)))


def _instance_normalization(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    rank = len(operand.shape)
    scale, shift = (_by_channel(operation, operation.operand(index), rank) for index in (1, 2))
    inverse = inverse_deviation(operation.number("epsilon", _EPSILON), operand.type)
    how = Normalization("instance_norm", tuple(range(2, rank)), inverse)
    return normalized(operation.builder, how, operand, scale, shift)


def _group_normalization(operation: Operation) -> Sequence[Value]:
    operand, builder = operation.operand(0), operation.builder
    batch, channels, *rest = operand.shape
    groups = operation.integer("num_groups")
    if isinstance(channels, int) and channels % groups:
        raise operation.error(f"{channels} channels cannot be divided into {groups} groups")
    grouped = builder.reshape(operand, (batch, groups, channels // groups, *rest))
    # Scale and shift are given for each group at first, and for each channel since opset 21.
    own = (groups, 1 if operation.opset < 21 else channels // groups, *(1 for _ in rest))
    scale, shift = (builder.reshape(operation.operand(index), own) for index in (1, 2))
    inverse = inverse_deviation(operation.number("epsilon", _EPSILON), operand.type)
    how = Normalization("group_norm", tuple(range(2, len(grouped.shape))), inverse)
    (found,) = normalized(builder, how, grouped, scale, shift)
    return [builder.reshape(found, operand.shape)]


def _mean_variance_normalization(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    axes = operation.list("axes") or (0, 2, 3)
    axes = tuple(sorted({operation.axis(axis, len(operand.shape)) for axis in axes}))
    inverse = f"1 / (sqrt({{v}}) + {literal(1e-9, computation_type(operand.type))})"
    return normalized(operation.builder, Normalization("mean_variance_norm", axes, inverse), operand)


def _lp_normalization(operation: Operation) -> Sequence[Value]:
    operand, order = operation.operand(0), operation.integer("p", 2)
    if order not in (1, 2):
        raise operation.error(f"the norm of order {order} is not supported; `p` is 1 or 2")
    axis = operation.axis(operation.integer("axis", -1), len(operand.shape))
    return [operation.builder.apply(UnitNorm(axis, order), operand)]


def _batch_normalization(operation: Operation) -> Sequence[Value]:
    operand, builder = operation.operand(0), operation.builder
    rank = len(operand.shape)
    spatial = operation.integer("spatial", 1)
    given = [operation.operand(index) for index in range(1, 5)]
    if spatial:
        scale, shift, mean, variance = (_by_channel(operation, value, rank) for value in given)
        axes = tuple(axis for axis in range(rank) if axis != 1)
    else:
        scale, shift, mean, variance = (builder.reshape(value, operand.shape[1:]) for value in given)
        axes = (0,)
    inverse = inverse_deviation(operation.number("epsilon", _EPSILON), operand.type)
    if not _trains(operation):
        # By channel first, so that constants are computed once, and go into the weights before.
        factor = pointwise(builder, "factor", inverse.format(v="{1}") + " * {0}", [scale, variance], scale.type)
        addend = pointwise(builder, "addend", "{0} - {1} * {2}", [shift, mean, factor], shift.type)
        return [pointwise(builder, "batch_norm", "{0} * {1} + {2}", [operand, factor, addend], operand.type)]
    wide = computation_type(operand.type)
    how = Normalization("batch_norm", axes, inverse, statistics=(("{m}", wide), ("{v}", wide)))
    result, *current = normalized(builder, how, operand, scale, shift)
    return [result, *_running(operation, given[2:], current)]


def _running(operation: Operation, before: Sequence[Value], current: Sequence[Value]) -> list[Value]:
    """Mean and variance as they run on, and those of this batch, for as many results as there are."""
    builder, momentum = operation.builder, operation.number("momentum", 0.9)
    running, saved = [], []
    for old, new in zip(before, current, strict=True):
        kept, added = (literal(factor, new.type) for factor in (momentum, 1 - momentum))
        now = builder.reshape(new, old.shape)
        running.append(pointwise(builder, "running", f"{kept} * {{0}} + {added} * {{1}}", [old, now], old.type))
        saved.append(cast(builder, now, old.type))
    return [*running, *saved][: max(len(operation.results) - 1, 0)]


def _trains(operation: Operation) -> bool:
    """Whether the statistics are those of the batch, by an attribute or, in opset 7 to 13, by the number of results."""
    if operation.opset >= 14:
        return bool(operation.integer("training_mode", 0))
    if operation.opset < 7:
        return not operation.integer("is_test", 0)
    return any(operation.results[1:])


RULES: Final[dict[str, Rule]] = {
    "BatchNormalization": _batch_normalization,
    "GroupNormalization": _group_normalization,
    "Hardmax": _along(_hardmax),
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _along(_log_softmax),
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance_normalization,
    "RMSNormalization": _rms_normalization,
    "Softmax": _along(softmax),
}
