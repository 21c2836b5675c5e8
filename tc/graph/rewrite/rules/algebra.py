"""Algebra that changes no bit, or no more than functions are off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.operators.neural.normalizations import Softmax
from tc.graph.operators.pointwise import Pointwise
from tc.graph.rewrite.pattern import Any, Constant, Formula, Made, Match
from tc.graph.rewrite.rule import Rule, always

X: Final = Any("x")
Y: Final = Any("y")
C: Final = Constant("c")


def _formula(name: str, expression: str, *names: str) -> Callable[[Builder, Match], Value]:
    """The pointwise operator of these values, with the type of the result."""

    def make(builder: Builder, match: Match) -> Value:
        operands = [match.values[own] for own in names]
        return builder.apply(Pointwise(name, expression, match.result.type), *operands)

    return make


def _is(number: float) -> Callable[[Match], bool]:
    def holds(match: Match) -> bool:
        same = match.values["x"].shape == match.result.shape and match.result.type.is_floating
        return same and elements(match.values["c"].shape) == 1 and bool(np.all(match.array("c") == number))

    return holds


def _is_power_of_two(match: Match) -> bool:
    """Whether the reciprocal of the constant is exact, and neither is subnormal."""
    if not match.result.type.is_floating or match.result.type.is_half:
        return False
    array = np.abs(match.array("c").astype(np.float64))
    plain = np.isfinite(array) & (array >= _LEAST) & (array <= 1 / _LEAST)
    return bool(plain.all()) and bool((np.frexp(array)[0] == 0.5).all())  # what frexp gives for powers of two


def _reciprocal(builder: Builder, match: Match) -> Value:
    held = match.array("c")
    factor = builder.constant((1 / held.astype(np.float64)).astype(held.dtype), "reciprocal")
    return builder.apply(Pointwise("mul", "{0} * {1}", match.result.type), match.values["x"], factor)


def _log_softmax(builder: Builder, match: Match) -> Value:
    operator = match.call("softmax").operator
    assert isinstance(operator, Softmax)
    return builder.apply(Softmax(operator.axes, logarithm=True), match.values["x"])


_LEAST: Final = 2.0**-100
RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "square",
        Formula("pow({0}, {1})", (X, C)),
        _formula("square", "{0} * {0}", "x"),
        _is(2),
        "pow(x, 2) -> x * x",
    ),
    Rule(
        "reciprocal of power",
        Formula("pow({0}, {1})", (X, C)),
        _formula("reciprocal", "1 / {0}", "x"),
        _is(-1),
        "pow(x, -1) -> 1 / x",
    ),
    Rule(
        "add negated",
        Formula("{0} + {1}", (X, Formula("-{0}", (Y,)))),
        _formula("sub", "{0} - {1}", "x", "y"),
        always,
        "x + -y -> x - y",
    ),
    Rule(
        "negated added",
        Formula("{0} + {1}", (Formula("-{0}", (X,)), Y)),
        _formula("sub", "{0} - {1}", "y", "x"),
        always,
        "-x + y -> y - x",
    ),
    Rule(
        "subtract negated",
        Formula("{0} - {1}", (X, Formula("-{0}", (Y,)))),
        _formula("add", "{0} + {1}", "x", "y"),
        always,
        "x - -y -> x + y",
    ),
    Rule(
        "product of negated",
        Formula("{0} * {1}", (Formula("-{0}", (X,)), Formula("-{0}", (Y,)))),
        _formula("mul", "{0} * {1}", "x", "y"),
        always,
        "-x * -y -> x * y",
    ),
    Rule(
        "divide by a power of two",
        Formula("{0} / {1}", (X, C)),
        _reciprocal,
        _is_power_of_two,
        "x / c -> x * (1 / c), where 1 / c is exact",
    ),
    Rule(
        "logarithm of softmax",
        Formula("log({0})", (Made("softmax", Softmax, (X,)),)),
        _log_softmax,
        lambda match: not getattr(match.call("softmax").operator, "logarithm", True),
        "log(softmax(x)) -> log_softmax(x), which is finite where the softmax rounds to 0",
    ),
    Rule(
        "one divided",
        Formula("{0} / {1}", (C, X)),
        _formula("reciprocal", "1 / {0}", "x"),
        _is(1),
        "1 / x, with a constant, -> 1 / x",
    ),
    Rule(
        "reciprocal times",
        Formula("{0} * {1}", (Formula("1 / {0}", (Y,), once=True), X)),
        _formula("div", "{0} / {1}", "x", "y"),
        lambda match: match.result.type.is_floating,
        "(1 / y) * x -> x / y, which is rounded once",
    ),
    Rule(
        "divided by reciprocal",
        Formula("{0} * {1}", (X, Formula("1 / {0}", (Y,), once=True))),
        _formula("div", "{0} / {1}", "x", "y"),
        lambda match: match.result.type.is_floating,
        "x * (1 / y) -> x / y, which is rounded once",
    ),
)
