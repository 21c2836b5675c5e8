"""Which subscripts need no check when a kernel runs."""

from __future__ import annotations

from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import Binary, Expression, IteratorReference, Literal, SizeReference, Unary


def is_proven_inside(expression: Expression) -> bool:
    """Whether a subscript was proven to lie inside its tensor: an affine function of the iterators.

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
        case _:
            return False
