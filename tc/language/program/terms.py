"""The terms of sums."""

from __future__ import annotations

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, Cast, Expression, Read, walk


def float32_term(value: Expression) -> Expression:
    """What a statement that reduces halves adds up, in float32.

    A conversion to a half at the root of the value says what type the reduction has; it rounds no term.
    """
    while isinstance(value, Cast) and value.type.is_half:
        value = value.operand
    return value if value.type is ScalarType.FLOAT32 else Cast(value, ScalarType.FLOAT32)


def is_product_of_two(value: Expression) -> bool:
    """Whether the terms of a sum are products of two things that are read, as in a product of matrices."""
    match value:
        case Cast(operand, type) if operand.type is type:
            return is_product_of_two(operand)
        case Binary(BinaryOperator.MULTIPLY, left, right):
            first, second = ({part for part in walk(side) if isinstance(part, Read)} for side in (left, right))
            return bool(first and second) and first != second
        case _:
            return False
