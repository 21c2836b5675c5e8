"""Integer arithmetic in the declared type: wrap-around, division that truncates and never traps."""

from __future__ import annotations

from typing import Final

import numpy as np

from tc.base.types import Kind, ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.reference.bounded import Array, Bounded, FloatArray, any_ambiguous, span


def truncated_division(left: Array, right: Array) -> tuple[Array, Array]:
    """Quotient and remainder as in C; both are 0 for a zero divisor, and the minimum over -1 wraps."""
    trapping = right == 0
    if right.dtype.kind == "i":
        trapping = trapping | (right == -1)
    divisor = np.where(trapping, right.dtype.type(1), right)
    remainder = np.fmod(left, divisor)
    quotient = (left - remainder) // divisor
    if right.dtype.kind == "i":
        quotient = np.where(right == -1, np.negative(left), quotient)
    zero = right.dtype.type(0)
    return np.where(right == 0, zero, quotient), np.where(trapping, zero, remainder)


def binary(operator: BinaryOperator, left: Bounded, right: Bounded, type: ScalarType) -> Bounded:
    """``+ - * / %`` of two integers or booleans of one type; booleans compute as integers do and test != 0."""
    if type.kind is Kind.BOOLEAN:
        return _boolean(operator, left, right)
    value = _exact(operator, left.value, right.value)
    if left.is_exact and right.is_exact:
        return Bounded(value, ambiguous=any_ambiguous(left, right))
    error = left.error + right.error
    match operator:
        case BinaryOperator.MULTIPLY:
            first, second = np.abs(left.value.astype(np.float64)), np.abs(right.value.astype(np.float64))
            error = first * right.error + second * left.error + left.error * right.error
        case BinaryOperator.DIVIDE | BinaryOperator.REMAINDER:
            error = np.where(error > 0, np.inf, 0.0)
        case _:
            pass
    return Bounded(value, within_type(value, error, type), any_ambiguous(left, right))


def _boolean(operator: BinaryOperator, left: Bounded, right: Bounded) -> Bounded:
    value = _exact(operator, left.value.astype(np.int64), right.value.astype(np.int64)) != 0
    if left.is_exact and right.is_exact:
        return Bounded(value, ambiguous=any_ambiguous(left, right))
    error = np.where(left.error + right.error > 0, 1.0, 0.0)
    return Bounded(value, error, any_ambiguous(left, right))


def _exact(operator: BinaryOperator, left: Array, right: Array) -> Array:
    match operator:
        case BinaryOperator.DIVIDE:
            return truncated_division(left, right)[0]
        case BinaryOperator.REMAINDER:
            return truncated_division(left, right)[1]
        case _:
            return np.asarray(_WRAPPING[operator](left, right))


_WRAPPING: Final = {
    BinaryOperator.ADD: np.add,
    BinaryOperator.SUBTRACT: np.subtract,
    BinaryOperator.MULTIPLY: np.multiply,
}


def within_type(value: Array, error: FloatArray, type: ScalarType) -> FloatArray:
    """The error, or the whole range of the type where a value within it might wrap."""
    center = np.asarray(value).astype(np.float64)
    wraps = ~((center - error >= type.minimum) & (center + error <= type.maximum)) & (error > 0)
    return np.where(wraps, span(type), error)
