"""Typed expressions while they are being checked, their promotion and their conversion.

Literals, sizes and iterators are weak, as Python's numbers are in NumPy 2: they take the type of what they meet.
Weakness exists only here; a ``Program`` holds explicit casts.
"""

from __future__ import annotations

import math
from enum import Enum

from tc.base.errors import Span
from tc.base.frozen import frozen
from tc.base.types import ScalarType, promote
from tc.language.algebra.fold import convert_literal, fold
from tc.language.program.program import Cast, Expression, Literal
from tc.language.program.report import Report


class Strength(Enum):
    """How the type of an expression counts when it meets another one.

    UNKNOWN: the type is not inferred yet, or the expression is in error; the other type wins.
    """

    STRONG = "strong"
    WEAK = "weak"
    UNKNOWN = "unknown"


@frozen
class Typed:
    """An expression, the strength of its type, and its place.  Weak types are INT64 and FLOAT64."""

    expression: Expression
    strength: Strength
    span: Span

    @property
    def type(self) -> ScalarType:
        """Of the expression."""
        return self.expression.type

    @property
    def is_bool(self) -> bool:
        """Whether the type is BOOL, and not a weak one."""
        return self.strength is Strength.STRONG and self.type is ScalarType.BOOL


def unknown(span: Span) -> Typed:
    """Stands for an expression in error: it meets everything without further complaint."""
    return Typed(Literal(0, ScalarType.INT64), Strength.UNKNOWN, span)


def common_type(left: tuple[ScalarType, Strength], right: tuple[ScalarType, Strength]) -> tuple[ScalarType, Strength]:
    """The type in which two operands meet."""
    if left[1] is Strength.UNKNOWN:
        return right
    if right[1] is Strength.UNKNOWN:
        return left
    if left[1] is right[1]:
        return promote(left[0], right[0]), left[1]
    weak, strong = (left[0], right[0]) if left[1] is Strength.WEAK else (right[0], left[0])
    if weak.is_floating:
        return strong if strong.is_floating else ScalarType.FLOAT64, Strength.STRONG
    return ScalarType.INT64 if strong is ScalarType.BOOL else strong, Strength.STRONG


def common(left: Typed, right: Typed) -> tuple[ScalarType, Strength]:
    """``common_type`` of two expressions."""
    return common_type((left.type, left.strength), (right.type, right.strength))


def convert(operand: Typed, type: ScalarType, report: Report) -> Expression:
    """The operand in a type, by an explicit cast; a weak literal that does not fit is an error."""
    expression = operand.expression
    if isinstance(expression, Literal) and operand.strength is Strength.WEAK:
        _require_fit(expression.value, type, operand.span, report)
        return convert_literal(expression, type)
    return expression if expression.type is type else fold(Cast(expression, type))


def settle(operand: Typed, report: Report) -> Expression:
    """The operand in its own type: where a weak one meets nothing."""
    return convert(operand, operand.type, report)


def _require_fit(value: bool | int | float, type: ScalarType, span: Span, report: Report) -> None:
    if isinstance(value, float):
        converted = convert_literal(Literal(value, ScalarType.FLOAT64), type).value
        if math.isfinite(value) and not math.isfinite(converted):
            report.error(f"the literal {value!r} does not fit into {type}", span, f"write `float64({value!r})`")
    elif type.is_integer and not type.minimum <= value <= type.maximum:
        report.error(
            f"the literal {value} does not fit into {type} ({type.minimum} to {type.maximum})",
            span,
            "cast the other operand to a wider type, for example `int64(...)`",
        )
