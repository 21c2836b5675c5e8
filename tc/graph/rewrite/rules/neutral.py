"""Operators that change nothing: neutral elements, inverses, what is done twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tc.base.types import Kind, ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import Pointwise
from tc.graph.rewrite.pattern import Any, Constant, Formula, Made, Match, Pattern
from tc.graph.rewrite.rule import Rule, always

X: Final = Any("x")
C: Final = Constant("c")


def _operand(_builder: Builder, match: Match) -> Value:
    return match.values["x"]


def _all(number: float) -> Callable[[Match], bool]:
    """Whether the constant has only this number, and does not make the result larger than the operand."""

    def holds(match: Match) -> bool:
        return match.values["x"].shape == match.result.shape and bool(np.all(match.array("c") == number))

    return holds


def _same_shape(match: Match) -> bool:
    return match.values["x"].shape == match.result.shape


def _neutral(name: str, expression: str, number: float, *, left: bool = False) -> list[Rule]:
    meaning = expression.format(number, "x") if left else expression.format("x", number)
    right = Rule(name, Formula(expression, (X, C)), _operand, _all(number), f"{meaning} -> x")
    if not left:
        return [right]
    other = Rule(f"{name} on the left", Formula(expression, (C, X)), _operand, _all(number), f"{meaning} -> x")
    return [Rule(name, right.pattern, _operand, _all(number), f"{expression.format('x', number)} -> x"), other]


def _twice(name: str, expression: str) -> Rule:
    """A function that gives what it gets back, or that does so from the second time on."""
    return Rule(name, Formula(expression, (Formula(expression, (X,)),)), _operand, always, name)


def _once(name: str, expression: str) -> Rule:
    inner: Pattern = Formula(expression, (X,))

    def first(builder: Builder, match: Match) -> Value:
        return builder.apply(Pointwise(name.split(maxsplit=1)[0], expression, match.result.type), match.values["x"])

    return Rule(name, Formula(expression, (inner,)), first, always, f"f(f(x)) -> f(x), f(x) = {expression.format('x')}")


def _is_own_type(match: Match) -> bool:
    return match.values["x"].type is match.result.type and _same_shape(match)


def _cast_back(match: Match) -> bool:
    """Whether the type between holds every number of the operand's."""
    between = match.net.value(match.call("inner").results[0]).type
    operator, inner = match.call("outer").operator, match.call("inner").operator
    if not (isinstance(operator, Pointwise) and isinstance(inner, Pointwise)):
        return False
    plain = operator.expression == inner.expression == "{0}"
    return plain and match.values["x"].type is match.result.type and _holds(between, match.result.type)


def _holds(wide: ScalarType, narrow: ScalarType) -> bool:
    if narrow is ScalarType.BOOL:
        return True
    if wide.is_floating and narrow.is_floating:
        return wide.unit_roundoff <= narrow.unit_roundoff and wide.largest >= narrow.largest
    if wide.is_floating:
        return narrow.is_integer and max(-narrow.minimum, narrow.maximum) * wide.unit_roundoff <= 1
    if narrow.is_floating or wide is ScalarType.BOOL:
        return False
    return wide.minimum <= narrow.minimum and wide.maximum >= narrow.maximum and wide.kind is not Kind.BOOLEAN


def _constant_condition(_builder: Builder, match: Match) -> Value | None:
    array = match.array("c")
    chosen = match.values["x"] if array.all() else match.values["y"] if not array.any() else None
    fits = chosen is not None and chosen.shape == match.result.shape and chosen.type is match.result.type
    return chosen if fits else None


RULES: Final[tuple[Rule, ...]] = (
    *_neutral("add zero", "{0} + {1}", 0, left=True),
    *_neutral("subtract zero", "{0} - {1}", 0),
    *_neutral("multiply by one", "{0} * {1}", 1, left=True),
    *_neutral("divide by one", "{0} / {1}", 1),
    *_neutral("power of one", "pow({0}, {1})", 1),
    _twice("negated twice", "-{0}"),
    _twice("not twice", "!{0}"),
    _once("relu twice", "max({0}, 0)"),
    _once("abs twice", "abs({0})"),
    _once("floor twice", "floor({0})"),
    _once("ceil twice", "ceil({0})"),
    Rule("cast to its own type", Formula("{0}", (X,)), _operand, _is_own_type, "T(x) -> x, for x of type T"),
    Rule(
        "cast there and back",
        Made("outer", Pointwise, (Made("inner", Pointwise, (X,)),)),
        _operand,
        _cast_back,
        "T(U(x)) -> x, for x of type T, all of whose numbers U has",
    ),
    Rule("greatest of one", Formula("max({0}, {1})", (X, X)), _operand, always, "max(x, x) -> x"),
    Rule("least of one", Formula("min({0}, {1})", (X, X)), _operand, always, "min(x, x) -> x"),
    Rule(
        "settled condition",
        Made("root", Pointwise, (C, X, Any("y"))),
        _constant_condition,
        lambda match: getattr(match.call("root").operator, "expression", "") == "{0} ? {1} : {2}",
        "c ? x : y -> x or y, for a constant c that is the same everywhere",
    ),
)
