"""Signs and absolute values of floats: minus signs move outwards, where they meet others, and end.

Zeros may change theirs, as they do where 0 is added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import Pointwise
from tc.graph.rewrite.pattern import Any, Constant, Formula, Match, Pattern
from tc.graph.rewrite.rule import Rule

X: Final = Any("x")
Y: Final = Any("y")
Z: Final = Any("z")
C: Final = Constant("c")
# By the expression, what an operator is called.
_NAMES: Final = {
    "-{0}": "neg",
    "{0} + {1}": "add",
    "{0} - {1}": "sub",
    "{0} * {1}": "mul",
    "{0} / {1}": "div",
    "{0} * {0}": "square",
    "abs({0})": "abs",
}


def _made(*steps: tuple[str, str]) -> Callable[[Builder, Match], Value]:
    """Applies expressions to values by name, ``xy`` for two of them; ``r`` is the result of the one before."""

    def make(builder: Builder, match: Match) -> Value:
        values = dict(match.values)
        for expression, names in steps:
            operands = [values[name] for name in names]
            values["r"] = builder.apply(Pointwise(_NAMES[expression], expression, match.result.type), *operands)
        return values["r"]

    return make


def _is_floating(match: Match) -> bool:
    return match.result.type.is_floating


def _as_large(name: str) -> Callable[[Match], bool]:
    """Whether a minus sign has no more to do behind the operator than before it."""
    return lambda match: _is_floating(match) and match.values[name].shape == match.result.shape


def _is(number: int) -> Callable[[Match], bool]:
    def holds(match: Match) -> bool:
        same = match.values["x"].shape == match.result.shape
        return same and _is_floating(match) and bool(np.all(match.array("c") == number))

    return holds


def _kept(_builder: Builder, match: Match) -> Value:
    """The operand of the root."""
    return match.net.value(match.root.operands[0])


def _rule(name: str, pattern: Pattern, meaning: str, *steps: tuple[str, str]) -> Rule:
    return Rule(name, pattern, _made(*steps), _is_floating, meaning)


def _outwards(name: str, before: str, after: str, *, left: bool) -> Rule:
    """A minus sign of one operand, which only this operator uses, becomes one of the result."""
    negated = Formula("-{0}", (X if left else Y,), once=True)
    meaning = f"{before.format('-x' if left else 'x', 'y' if left else '-y')} -> -({after.format('x', 'y')})"
    pattern = Formula(before, (negated, Y) if left else (X, negated))
    return Rule(name, pattern, _made((after, "xy"), ("-{0}", "r")), _as_large("x" if left else "y"), meaning)


def _negated_difference(name: str, expression: str, left: bool) -> Rule:
    """A minus sign that a difference takes, which is a factor, a dividend or a divisor."""
    difference = Formula("{0} - {1}", (X, Y), once=True)
    whole = Formula(expression, (difference, Z) if left else (Z, difference), once=True)
    sides = (("(x - y)", "z"), ("(y - x)", "z")) if left else (("z", "(x - y)"), ("z", "(y - x)"))
    before, after = (expression.format(*side) for side in sides)
    meaning = f"-({before}) -> {after}"
    return _rule(name, Formula("-{0}", (whole,)), meaning, ("{0} - {1}", "yx"), (expression, "rz" if left else "zr"))


def _already(name: str, outer: str, inner: str) -> Rule:
    """A function that leaves what another one gives as it is."""
    meaning = f"{outer.format(inner.format('x'))} -> {inner.format('x')}"
    return Rule(name, Formula(outer, (Formula(inner, (X,)),)), _kept, _is_floating, meaning)


_WITH_DIFFERENCE: Final = (
    ("negated product of difference", "{0} * {1}", True),
    ("negated product with difference", "{0} * {1}", False),
    ("negated quotient of difference", "{0} / {1}", True),
    ("negated quotient by difference", "{0} / {1}", False),
)

RULES: Final[tuple[Rule, ...]] = (
    Rule("zero minus", Formula("{0} - {1}", (C, X)), _made(("-{0}", "x")), _is(0), "0 - x -> -x"),
    Rule("times minus one", Formula("{0} * {1}", (X, C)), _made(("-{0}", "x")), _is(-1), "x * -1 -> -x"),
    Rule("minus one times", Formula("{0} * {1}", (C, X)), _made(("-{0}", "x")), _is(-1), "-1 * x -> -x"),
    Rule("divided by minus one", Formula("{0} / {1}", (X, C)), _made(("-{0}", "x")), _is(-1), "x / -1 -> -x"),
    _rule(
        "negated difference",
        Formula("-{0}", (Formula("{0} - {1}", (X, Y), once=True),)),
        "-(x - y) -> y - x",
        ("{0} - {1}", "yx"),
    ),
    *(_negated_difference(*one) for one in _WITH_DIFFERENCE),
    _outwards("difference from negated", "{0} - {1}", "{0} + {1}", left=True),
    _outwards("negated factor", "{0} * {1}", "{0} * {1}", left=False),
    _outwards("negated factor on the left", "{0} * {1}", "{0} * {1}", left=True),
    _outwards("negated divisor", "{0} / {1}", "{0} / {1}", left=False),
    _outwards("negated dividend", "{0} / {1}", "{0} / {1}", left=True),
    _rule("product with itself", Formula("{0} * {1}", (X, X)), "x * x -> square of x", ("{0} * {0}", "x")),
    _rule(
        "square of negated",
        Formula("{0} * {0}", (Formula("-{0}", (X,)),)),
        "square of -x -> square of x",
        ("{0} * {0}", "x"),
    ),
    _rule(
        "square of absolute",
        Formula("{0} * {0}", (Formula("abs({0})", (X,)),)),
        "square of abs(x) -> square of x",
        ("{0} * {0}", "x"),
    ),
    _rule("absolute of negated", Formula("abs({0})", (Formula("-{0}", (X,)),)), "abs(-x) -> abs(x)", ("abs({0})", "x")),
    _already("relu of absolute", "max({0}, 0)", "abs({0})"),
    _already("relu of square", "max({0}, 0)", "{0} * {0}"),
    _already("absolute of relu", "abs({0})", "max({0}, 0)"),
    _already("absolute of square", "abs({0})", "{0} * {0}"),
    _already("floor of ceil", "floor({0})", "ceil({0})"),
    _already("ceil of floor", "ceil({0})", "floor({0})"),
)
