"""Tensors that are made from numbers: filled ones, and ranges."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import torch

from tc.base.types import ScalarType
from tc.graph.ir.sizes import Shape
from tc.graph.ir.values import Value
from tc.graph.operators.texts import definition, literal
from tc.torch.fx.operation import Operation, Rule, Rules, UnclaimedError, extents
from tc.torch.fx.types import array_as

aten: Final = torch.ops.aten
# Ranges of more elements than these are computed, and not kept.
_MOST_KEPT: Final = 1 << 16


def filled(operation: Operation, shape: Shape, number: Any, type: ScalarType | None = None) -> Value:
    """A tensor with all elements equal, which share their memory; ``type``: that of the result by default."""
    constant = operation.builder.constant(array_as(number, operation.type if type is None else type), "number")
    return operation.builder.expand(constant, shape)


def _filling(shape: str | None, number: str | float) -> Rule:
    """A tensor of a shape by the name of an argument, or of that of ``self``; the number may be an argument, too."""

    def rule(operation: Operation) -> Value:
        found = extents(operation.value("self")) if shape is None else tuple(operation.integers(shape))
        return filled(operation, found, operation[number] if isinstance(number, str) else number)

    return rule


def _empty(shape: str | None) -> Rule:
    """Zeros, since what is in memory may be anything; what random numbers take the place of is as good as any."""
    zeros = _filling(shape, 0)

    def rule(operation: Operation) -> Value:
        users = operation.node.users
        if users and all("bernoulli" in str(user.target) for user in users):
            raise UnclaimedError("has the shape of random numbers")
        return zeros(operation)  # type: ignore[return-value]

    return rule


def _scalar(operation: Operation) -> Value:
    return filled(operation, (), operation["s"])


def _range(operation: Operation) -> Value:
    start, end, step = (operation.number(name) for name in ("start", "end", "step"))
    if not operation.type.is_floating:
        start, end, step = int(start), int(end), int(step)
        return counted(operation, start, step, max(-((start - end) // step), 0))
    return counted(operation, start, step, max(math.ceil((end - start) / step), 0))


def _counting(operation: Operation) -> Value:
    return counted(operation, operation.integer("start"), operation.integer("step"), operation.integer("length"))


def counted(operation: Operation, start: float, step: float, count: int) -> Value:
    """``start``, ``start + step`` and so on: so many numbers."""
    type = operation.type
    if count <= _MOST_KEPT:
        return operation.builder.constant(array_as(start + step * np.arange(count), type), "range")
    wide = ScalarType.FLOAT64 if type.is_floating else ScalarType.INT64
    value = f"{literal(start, wide)} + {literal(step, wide)} * i"
    return operation.one(definition("range", [], ["Y"], [f"Y(i) = {type}({value}) where i in 0:{count}"]))


RULES: Final[Rules] = {
    aten.full.default: _filling("size", "fill_value"),
    aten.new_full.default: _filling("size", "fill_value"),
    aten.full_like.default: _filling(None, "fill_value"),
    aten.zeros.default: _filling("size", 0),
    aten.new_zeros.default: _filling("size", 0),
    aten.zeros_like.default: _filling(None, 0),
    aten._efficientzerotensor.default: _filling("size", 0),
    aten.ones.default: _filling("size", 1),
    aten.new_ones.default: _filling("size", 1),
    aten.ones_like.default: _filling(None, 1),
    aten.empty.memory_format: _empty("size"),
    aten.empty_permuted.default: _empty("size"),
    aten.empty_strided.default: _empty("size"),
    aten.new_empty.default: _empty("size"),
    aten.new_empty_strided.default: _empty("size"),
    aten.empty_like.default: _empty(None),
    aten.scalar_tensor.default: _scalar,
    aten.arange.start_step: _range,
    torch.ops.prims.iota.default: _counting,
}
