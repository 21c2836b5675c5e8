"""Factors and addends of each channel go into the weights and the bias of the convolution before them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.constants import Contents, given
from tc.graph.ir.nodes import Call, View
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.ir.views import Reshape
from tc.graph.operators.neural.convolution import Convolved
from tc.graph.rewrite.pattern import Any, Constant, Formula, Match
from tc.graph.rewrite.rule import Rule

X: Final = Any("x")
FACTOR: Final = Constant("factor")
ADDEND: Final = Constant("addend")


@frozen
class _Found:
    """A convolution whose result only the root uses, its weights, and the contents of these and of its bias."""

    call: Call
    operator: Convolved
    value: Value
    weights: Contents
    bias: Contents | None


def _convolution(match: Match) -> _Found | None:
    net, name = match.net, match.values["x"].name
    maker = net.maker(name)
    if isinstance(maker, View) and isinstance(maker.how, Reshape) and net.uses(name) == 1:  # groups become channels
        name = maker.operand
        maker = net.maker(name)
    if not (isinstance(maker, Call) and isinstance(maker.operator, Convolved) and net.uses(name) == 1):
        return None
    weights = net.contents(maker.operands[1])
    bias = net.contents(maker.operands[2]) if maker.operator.bias else None
    if weights is None or (maker.operator.bias and bias is None) or match.result.type.is_integer:
        return None
    return _Found(maker, maker.operator, net.value(maker.operands[1]), weights, bias)


def _by_channel(match: Match, name: str) -> Contents | None:
    """What gives a constant as a number for each channel of the result; None if it has others."""
    if name not in match.values:
        return given(np.zeros(1))
    value, shape = match.values[name], match.result.shape
    contents, channels = match.net.contents(value.name), shape[1]
    if contents is None or len(value.shape) > len(shape) or not isinstance(channels, int):
        return None
    whole = (*(1 for _ in shape[len(value.shape) :]), *value.shape)
    if whole[0] != 1 or elements(whole[2:]) != 1 or whole[1] not in (1, channels):
        return None
    return lambda: np.broadcast_to(contents().astype(np.float64).reshape(-1), (channels,))


def _into_weights(builder: Builder, match: Match) -> Value | None:
    found = _convolution(match)
    if found is None:
        return None
    factor, addend = (_by_channel(match, name) for name in ("factor", "addend"))
    if factor is None or addend is None:
        return None
    operator, channels, type = found.operator, found.operator.channels, found.value.type
    each = tuple(int(extent) for extent in channels.extents(channels.result) if isinstance(extent, int))
    if len(each) != len(channels.result):
        return None
    places = [channels.weights.index(letter) for letter in channels.result]
    scales = "factor" in match.values

    def scaled() -> np.ndarray:
        weights, spread = found.weights(), [1] * len(found.value.shape)
        for place, extent in zip(places, each, strict=True):
            spread[place] = extent
        scale = factor().reshape(each).transpose(np.argsort(places)).reshape(spread)
        return (weights.astype(np.float64) * scale).astype(weights.dtype)

    def total() -> np.ndarray:
        bias = np.zeros(()) if found.bias is None else found.bias()
        held = np.broadcast_to(bias, each).astype(np.float64) * (factor().reshape(each) if scales else 1)
        added = np.broadcast_to(addend(), math.prod(each)).reshape(each)
        return np.asarray(held + added, found.weights().dtype)

    operands = [
        match.net.value(found.call.operands[0]),
        builder.constant_later(scaled, type, found.value.shape, "weights") if scales else found.value,
        builder.constant_later(total, type, each, "bias"),
    ]
    made = builder.apply(replace(operator, bias=True), *operands)
    return builder.reshape(made, match.result.shape)


def _keeps_shape(match: Match) -> bool:
    return match.values["x"].shape == match.result.shape


def _rule(name: str, expression: str, operands: tuple[Any | Constant, ...], meaning: str) -> Rule:
    return Rule(name, Formula(expression, operands), _into_weights, _keeps_shape, meaning)


RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "scale and shift into weights",
        "{0} * {1} + {2}",
        (X, FACTOR, ADDEND),
        "conv(x, w) * s + t -> conv(x, s * w) + t",
    ),
    _rule("factor into weights", "{0} * {1}", (X, FACTOR), "conv(x, w) * s -> conv(x, s * w)"),
    _rule("factor on the left into weights", "{0} * {1}", (FACTOR, X), "s * conv(x, w) -> conv(x, s * w)"),
    _rule("addend into bias", "{0} + {1}", (X, ADDEND), "conv(x, w) + b + t -> conv(x, w) + (b + t)"),
    _rule("addend on the left into bias", "{0} + {1}", (ADDEND, X), "t + (conv(x, w) + b) -> conv(x, w) + (b + t)"),
)
