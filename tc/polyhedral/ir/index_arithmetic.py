"""Sums, products and quotients of index expressions, for values that are not negative."""

from __future__ import annotations

from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral, IndexOperation, IndexOperator


def plus(left: IndexExpression, right: IndexExpression) -> IndexExpression:
    """``left + right``."""
    return IndexOperation(IndexOperator.ADD, (left, right))


def minus(left: IndexExpression, right: IndexExpression) -> IndexExpression:
    """``left - right``."""
    return IndexOperation(IndexOperator.SUBTRACT, (left, right))


def times(factor: int, value: IndexExpression) -> IndexExpression:
    """``factor * value``."""
    return value if factor == 1 else IndexOperation(IndexOperator.MULTIPLY, (IndexLiteral(factor), value))


def quotient(value: IndexExpression, divisor: int) -> IndexExpression:
    """``value / divisor``, rounded down."""
    return IndexOperation(IndexOperator.NONNEGATIVE_DIVIDE, (value, IndexLiteral(divisor)))


def modulo(value: IndexExpression, divisor: int) -> IndexExpression:
    """What ``value / divisor`` leaves."""
    return IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (value, IndexLiteral(divisor)))
