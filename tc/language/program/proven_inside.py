"""Which subscripts need no check when a kernel runs."""

from __future__ import annotations

from typing import Final

from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import (
    Binary,
    Call,
    Expression,
    IteratorReference,
    Literal,
    Select,
    SizeReference,
    Unary,
)

_LOGIC: Final = (BinaryOperator.AND, BinaryOperator.OR)
_COMPARISONS: Final = (
    BinaryOperator.EQUAL,
    BinaryOperator.NOT_EQUAL,
    BinaryOperator.LESS,
    BinaryOperator.LESS_EQUAL,
    BinaryOperator.GREATER,
    BinaryOperator.GREATER_EQUAL,
)


def is_proven_inside(expression: Expression) -> bool:
    """Whether a subscript was proven to lie inside its tensor: a piecewise quasi-affine function of the iterators.

    The test is syntactic and narrower than the proof; what it does not recognize is checked at run time.
    """
    match expression:
        case Literal(_, type):
            return type.is_integer
        case IteratorReference() | SizeReference():
            return True
        case Unary(UnaryOperator.NEGATE, operand):
            return is_proven_inside(operand)
        case Binary(BinaryOperator.ADD | BinaryOperator.SUBTRACT, left, right):
            return is_proven_inside(left) and is_proven_inside(right)
        case Binary(BinaryOperator.MULTIPLY, left, right):
            return (is_proven_inside(left) and isinstance(right, Literal)) or (
                isinstance(left, Literal) and is_proven_inside(right)
            )
        case Binary(BinaryOperator.DIVIDE | BinaryOperator.REMAINDER, dividend, Literal(value)):
            return value != 0 and is_proven_inside(dividend)
        case Call("min" | "max", (left, right)):
            return is_proven_inside(left) and is_proven_inside(right)
        case Select(condition, then, otherwise):
            return _is_affine_condition(condition) and is_proven_inside(then) and is_proven_inside(otherwise)
        case _:
            return False


def _is_affine_condition(condition: Expression) -> bool:
    match condition:
        case Unary(UnaryOperator.NOT, operand):
            return _is_affine_condition(operand)
        case Binary(operator, left, right) if operator in _LOGIC:
            return _is_affine_condition(left) and _is_affine_condition(right)
        case Binary(operator, left, right) if operator in _COMPARISONS:
            return is_proven_inside(left) and is_proven_inside(right)
        case _:
            return False
