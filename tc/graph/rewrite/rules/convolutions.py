"""Factors and addends of each channel go into the weights and the bias of the convolution before them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.nodes import Call, View
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
    """A convolution whose result only the root uses, and the contents of its weights and bias."""

    call: Call
    operator: Convolved
    weights: np.ndarray
    bias: np.ndarray | None


def _convolution(match: Match) -> _Found | None:
    net, name = match.net, match.values["x"].name
    maker = net.maker(name)
    if isinstance(maker, View) and isinstance(maker.how, Reshape) and net.uses(name) == 1:  # groups become channels
        name = maker.operand
        maker = net.maker(name)
    if not (isinstance(maker, Call) and isinstance(maker.operator, Convolved) and net.uses(name) == 1):
        return None
    weights = net.constant(maker.operands[1])
    bias = net.constant(maker.operands[2]) if maker.operator.bias else None
    if weights is None or (maker.operator.bias and bias is None) or match.result.type.is_integer:
        return None
    return _Found(maker, maker.operator, weights, bias)


def _by_channel(match: Match, name: str) -> np.ndarray | None:
    """A constant as a number for each channel of the result; None if it has others."""
    if name not in match.values:
        return np.zeros(1)
    array, shape = match.array(name).astype(np.float64), match.result.shape
    channels = shape[1]
    if array.ndim > len(shape) or not isinstance(channels, int):
        return None
    whole = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if whole.shape[0] != 1 or math.prod(whole.shape[2:]) != 1:
        return None
    return np.broadcast_to(whole.reshape(-1), (channels,)) if whole.shape[1] in (1, channels) else None


def _into_weights(builder: Builder, match: Match) -> Value | None:
    found = _convolution(match)
    if found is None:
        return None
    factor, addend = (_by_channel(match, name) for name in ("factor", "addend"))
    if factor is None or addend is None:
        return None
    operator, channels = found.operator, found.operator.channels
    each = tuple(int(extent) for extent in channels.extents(channels.result) if isinstance(extent, int))
    if len(each) != len(channels.result):
        return None
    type, weights, bias = found.weights.dtype, found.weights, np.zeros(()) if found.bias is None else found.bias
    total = np.broadcast_to(bias, each).astype(np.float64)
    if "factor" in match.values:
        scale = factor.reshape(each)
        places = [channels.weights.index(letter) for letter in channels.result]
        spread = [1] * weights.ndim
        for place, extent in zip(places, each, strict=True):
            spread[place] = extent
        order = np.argsort(places)
        weights = (weights.astype(np.float64) * scale.transpose(order).reshape(spread)).astype(type)
        total = total * scale
    total = total + np.broadcast_to(addend, math.prod(each)).reshape(each)
    operands = [
        match.net.value(found.call.operands[0]),
        builder.constant(weights, "weights") if "factor" in match.values else match.net.value(found.call.operands[1]),
        builder.constant(total.astype(type), "bias"),
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
