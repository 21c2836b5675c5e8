"""Formulas of formulas, as one; constants of one element, as literals: last, since other rules match single steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from tc.graph.ir.builder import Builder
from tc.graph.ir.nodes import Call
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import Pointwise
from tc.graph.operators.texts import literal
from tc.graph.rewrite.pattern import Any, Match
from tc.graph.rewrite.rule import Rule

# A formula with more operands reads more at a time than there are registers.
MOST_OPERANDS: Final = 8
_PLACE: Final = re.compile(r"\{(\d+)\}")


def _operator(match: Match) -> Pointwise:
    assert isinstance(match.root, Call)
    assert isinstance(match.root.operator, Pointwise)
    return match.root.operator


def _is_pointwise(match: Match) -> bool:
    return isinstance(match.root, Call) and isinstance(match.root.operator, Pointwise)


def _with_literals(builder: Builder, match: Match) -> Value | None:
    """The formula with literals for operands of one known element."""
    operator, result = _operator(match), match.result
    operands = [match.net.value(name) for name in match.root.operands]
    known = [_number(match, operand) for operand in operands]
    kept = [operand for operand, number in zip(operands, known, strict=True) if number is None]
    if len(kept) in (0, len(operands)) or not any(operand.shape == result.shape for operand in kept):
        return None
    places = iter(range(len(kept)))
    parts = [f"{{{next(places)}}}" if number is None else number for number in known]
    expression = _placed(operator.expression, dict(enumerate(parts)))
    return builder.apply(Pointwise(operator.name, expression, result.type), *kept)


def _number(match: Match, operand: Value) -> str | None:
    """A constant of one element as a literal; None of other values, and where a literal would not be exactly it."""
    if elements(operand.shape) != 1 or operand.type.is_half:
        return None
    array = match.net.constant(operand.name)
    if array is None:
        return None
    number = array.reshape(())[()]
    if not np.isfinite(number) or (number == 0 and np.signbit(number)):
        return None
    return f"({literal(float(number) if operand.type.is_floating else int(number), operand.type)})"


def _as_one(builder: Builder, match: Match) -> Value | None:
    """The formula with the first of its operands in place that only it uses, and once."""
    operator, result = _operator(match), match.result
    for place, name in enumerate(match.root.operands):
        inner = match.net.maker(name)
        if not (isinstance(inner, Call) and isinstance(inner.operator, Pointwise)):
            continue
        once = match.net.uses(name) == 1 and match.root.operands.count(name) == 1
        if not once or operator.expression.count(f"{{{place}}}") != 1 or match.net.value(name).shape != result.shape:
            continue
        outer = [own for at, own in enumerate(match.root.operands) if at != place]
        operands = list(dict.fromkeys((*outer, *inner.operands)))
        if len(operands) > MOST_OPERANDS:
            continue
        read = {at: f"{{{operands.index(other)}}}" for at, other in enumerate(inner.operands)}
        made = f"{match.net.value(name).type}({_placed(inner.operator.expression, read)})"
        parts = {at: f"{{{operands.index(other)}}}" for at, other in enumerate(match.root.operands) if at != place}
        expression = _placed(operator.expression, {**parts, place: made})
        title = "_".join(dict.fromkeys((*inner.operator.name.split("_"), *operator.name.split("_"))))[:40].rstrip("_")
        return builder.apply(Pointwise(title, expression, result.type), *map(match.net.value, operands))
    return None


def _placed(expression: str, parts: Mapping[int, str]) -> str:
    """The expression with other texts for its operands."""
    return _PLACE.sub(lambda place: parts[int(place[1])], expression)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "literals",
        Any("root"),
        _with_literals,
        _is_pointwise,
        "f(x, c) -> f(x), with the constant c of one element as a literal",
        late=True,
    ),
    Rule(
        "formula of a formula",
        Any("root"),
        _as_one,
        _is_pointwise,
        "f(g(x), y) -> h(x, y), where f and g are pointwise and only f uses g(x)",
        late=True,
    ),
)
