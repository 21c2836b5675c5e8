"""Floating-point arithmetic on bounded values: what any order of rounding and contraction may make of it.

Operands are settled (see ``bounded.settle``); results are not yet: their overflow is judged by who consumes them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tc.base.types import ScalarType
from tc.reference.bounded import Array, BoolArray, Bounded, FloatArray, any_ambiguous, roundoff


def negate(operand: Bounded) -> Bounded:
    """``-operand``, which is exact."""
    return Bounded(np.negative(operand.value), operand.error, operand.ambiguous)


def add(left: Bounded, right: Bounded, type: ScalarType) -> Bounded:
    """``left + right``, rounded once."""
    value = left.value + right.value
    error = left.error + right.error
    # Sums cannot underflow: a subnormal sum is exact.
    error = error + roundoff(type) * (np.abs(value) + error)

    def certain() -> BoolArray:
        half = left.value * 0.5 + right.value * 0.5
        overflowed = np.abs(half) - left.error - right.error >= 2.0**1023
        return ~np.isfinite(left.value) | ~np.isfinite(right.value) | overflowed

    return _checked(value, error, left, right, certain)


def subtract(left: Bounded, right: Bounded, type: ScalarType) -> Bounded:
    """``left - right``, rounded once."""
    return add(left, negate(right), type)


def multiply(left: Bounded, right: Bounded, type: ScalarType) -> Bounded:
    """``left * right``, rounded once."""
    value = left.value * right.value
    error = _product_error(left, right)
    error = error + _rounding(np.abs(value) + error, type)

    def certain() -> BoolArray:
        # Four times the range: far enough for an addition contracted with the product not to bring it back.
        lower = (_least(left) * 2.0**-512) * (_least(right) * 2.0**-514)
        infinite = np.isinf(left.value) | np.isinf(right.value)
        may_vanish = _may_be_zero_inexactly(left) | _may_be_zero_inexactly(right)
        nan = np.isnan(left.value) | np.isnan(right.value)
        return np.asarray(nan | np.where(infinite, ~may_vanish, lower >= 1.0))

    return _checked(value, error, left, right, certain)


def divide(left: Bounded, right: Bounded, type: ScalarType) -> Bounded:
    """``left / right``, rounded once; unbounded where the divisor may be 0."""
    value = left.value / right.value
    lowest = np.abs(right.value) - right.error
    propagated = left.error if right.is_exact else left.error + np.abs(value) * right.error
    error = np.where(lowest > 0, propagated / lowest, np.inf)
    error = error + _rounding(np.abs(value) + error, type)

    def certain() -> BoolArray:
        infinite = ~np.isfinite(left.value) | ~np.isfinite(right.value)
        by_zero = (right.value == 0) & (right.error == 0) & ~_may_be_zero_inexactly(left)
        lower = (_least(left) * 2.0**-512) / (np.abs(right.value) + right.error) * 2.0**-514
        apart = lowest > 0
        return np.asarray(by_zero | (infinite & apart) | np.isnan(right.value) | (apart & (lower >= 1.0)))

    return _checked(value, error, left, right, certain)


def extremum(choose: Callable[[Array, Array], Array], left: Bounded, right: Bounded) -> Bounded:
    """``choose`` is one of NumPy's minimum, maximum, fmin, fmax."""
    value = choose(left.value, right.value)
    if left.is_exact and right.is_exact:
        return Bounded(value, ambiguous=any_ambiguous(left, right))
    lower = choose(left.value - left.error, right.value - right.error)
    upper = choose(left.value + left.error, right.value + right.error)
    # An unknown operand may be NaN, whatever the other one is.
    unknown = np.isinf(left.error) | np.isinf(right.error)
    error = np.where(unknown, np.inf, enclosing_error(value, lower, upper))
    return Bounded(value, error, any_ambiguous(left, right))


def enclosing_error(value: Array, lower: Array, upper: Array) -> FloatArray:
    """The error that reaches from the value to both ends; 0 for a certain NaN or infinity."""
    below = np.where(value == lower, 0.0, value - lower)
    above = np.where(value == upper, 0.0, upper - value)
    return np.where(np.isnan(value), 0.0, np.maximum(below, above))


def _product_error(left: Bounded, right: Bounded) -> FloatArray:
    if left.is_exact and right.is_exact:
        return np.zeros(())
    if left.is_exact:
        return np.asarray(np.abs(left.value) * right.error)
    if right.is_exact:
        return np.asarray(np.abs(right.value) * left.error)
    return np.asarray(np.abs(left.value) * right.error + (np.abs(right.value) + right.error) * left.error)


def _rounding(magnitude: Array, type: ScalarType) -> FloatArray:
    """Of a product or quotient, which may underflow; an exact zero stays one."""
    return np.where(magnitude == 0, 0.0, roundoff(type) * magnitude + type.smallest_subnormal)


def _least(operand: Bounded) -> FloatArray:
    return np.asarray(np.maximum(np.abs(operand.value) - operand.error, 0.0))


def _may_be_zero_inexactly(operand: Bounded) -> BoolArray:
    return np.asarray((operand.error > 0) & (np.abs(operand.value) <= operand.error))


def _checked(
    value: Array, error: FloatArray, left: Bounded, right: Bounded, certain: Callable[[], BoolArray]
) -> Bounded:
    """Corrects the error where values or errors are not finite; ``certain`` tells which infinities and NaNs must be."""
    if not np.isfinite(error).all():
        known = np.isfinite(left.error) & np.isfinite(right.error)
        special = np.where(known & certain(), 0.0, np.inf)
        error = np.where(np.isfinite(value), np.where(np.isnan(error), np.inf, error), special)
    return Bounded(value, np.asarray(error), any_ambiguous(left, right))
