"""Builtins of two and more operands on bounded values, before the rounding of the function itself."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tc.base.types import ScalarType
from tc.reference import arithmetic, elementary
from tc.reference.bounded import Array, BoolArray, Bounded, FloatArray, any_ambiguous, distance, overflow_threshold


def _combined(value: Array, error: FloatArray, *operands: Bounded) -> Bounded:
    """Nothing is known of the result where nothing is known of an operand; certain NaNs and infinities stay."""
    for operand in operands:
        if not operand.is_exact:
            error = np.where(np.isinf(operand.error), np.inf, error)
    return Bounded(value, np.asarray(error), any_ambiguous(*operands))


def _undecided(result: Bounded, open_: BoolArray, error: FloatArray) -> Bounded:
    """Where ``open_`` holds, other outcomes up to ``error`` away are possible."""
    if not open_.any():
        return result
    widened = np.where(open_, np.maximum(result.error, error), result.error)
    return Bounded(result.value, widened, np.logical_or(result.ambiguous, open_))


def _are_exact(operands: tuple[Bounded, ...]) -> bool:
    return all(operand.is_exact for operand in operands)


def atan2(y: Bounded, x: Bounded) -> Bounded:
    """The angle of the point ``(x, y)``."""
    value = np.arctan2(y.value, x.value)
    if _are_exact((y, x)):
        return _combined(value, np.zeros(()), y, x)
    # Seen from the origin, a disc of this radius at this distance covers an angle of asin(radius / distance).
    radius, length = np.hypot(y.error, x.error), np.hypot(y.value, x.value)
    ratio = np.where(radius == 0, 0.0, np.where(radius < length, radius / length, 1.0))
    angle = np.where(ratio < 1.0, np.arcsin(ratio), np.pi)
    crosses_cut = (x.value - x.error <= 0) & (np.abs(y.value) <= y.error) & (y.error > 0)
    return _undecided(_combined(value, np.where(np.isnan(value), 0.0, angle), y, x), crosses_cut, np.asarray(7.0))


def copysign(magnitude: Bounded, sign: Bounded) -> Bounded:
    """The magnitude with the sign of the other operand."""
    value = np.copysign(magnitude.value, sign.value)
    result = _combined(value, magnitude.error, magnitude, sign)
    # NaN has no sign that anybody could see.
    open_ = (sign.error > 0) & (np.abs(sign.value) <= sign.error) & ~np.isnan(value)
    return _undecided(result, np.asarray(open_), 2.0 * np.abs(value) + magnitude.error)


def positive_difference(left: Bounded, right: Bounded, type: ScalarType) -> Bounded:
    """``fdim``: continuous, so that no decision is ambiguous."""
    difference = arithmetic.subtract(left, right, type)
    either_nan = np.isnan(left.value) | np.isnan(right.value)
    value = np.where(either_nan, np.nan, np.where(left.value > right.value, difference.value, 0.0))
    lower = np.maximum(difference.value - difference.error, 0.0)
    upper = np.maximum(difference.value + difference.error, 0.0)
    reach = arithmetic.enclosing_error(value, lower, upper)
    error = np.where(np.isfinite(difference.value), reach, difference.error)
    return Bounded(value, error, difference.ambiguous)


def fma(factor: Bounded, other: Bounded, addend: Bounded, type: ScalarType) -> Bounded:
    """The product is not rounded, nor does it overflow: an infinite addend outweighs any finite one."""
    result = arithmetic.add(arithmetic.multiply(factor, other, ScalarType.FLOAT64), addend, type)
    outweighed = np.isinf(addend.value) & np.isfinite(factor.value) & np.isfinite(other.value)
    known = np.where(np.isfinite(factor.error + other.error + addend.error), 0.0, np.inf)
    value, error = np.where(outweighed, addend.value, result.value), np.where(outweighed, known, result.error)
    return Bounded(value, error, result.ambiguous)


def fmod(dividend: Bounded, divisor: Bounded) -> Bounded:
    """Exact; with inexact operands it jumps where the quotient passes an integer."""
    return _modulo(dividend, divisor, np.fmod(dividend.value, divisor.value), np.trunc)


def remainder(dividend: Bounded, divisor: Bounded) -> Bounded:
    """As ``fmod``, with the quotient rounded to the nearest integer."""
    return _modulo(dividend, divisor, elementary.remainder(dividend.value, divisor.value), np.rint)


def _modulo(dividend: Bounded, divisor: Bounded, value: Array, whole: Callable[[Array], Array]) -> Bounded:
    operands = (dividend, divisor)
    if _are_exact(operands):
        return _combined(value, np.zeros(()), *operands)
    inexact = dividend.error + divisor.error > 0
    length = np.abs(divisor.value)
    lowest, longest = length - divisor.error, length + divisor.error
    quotient = np.abs(dividend.value) / length
    spread = (dividend.error + quotient * divisor.error) / lowest + 2.0**-50 * quotient
    same = whole(quotient - spread) == whole(quotient + spread)
    error = np.where(inexact, dividend.error + whole(quotient) * divisor.error, 0.0)
    result = _combined(value, np.where(np.isfinite(value), error, 0.0), *operands)
    jump = np.where(lowest > 0, np.abs(value) + longest, np.inf)
    return _undecided(result, inexact & ~same & ~np.isnan(dividend.value) & ~np.isnan(divisor.value), jump)


def nextafter(start: Bounded, toward: Bounded, type: ScalarType) -> Bounded:
    """The neighbour in the declared type."""
    value = _neighbour(start.value, toward.value, type)
    inexact = start.error + toward.error > 0
    step = 2.0 * type.unit_roundoff * (np.abs(start.value) + start.error) + type.smallest_subnormal
    return _combined(value, np.where(inexact, start.error + 2.0 * step, 0.0), start, toward)


def _neighbour(start: FloatArray, toward: FloatArray, type: ScalarType) -> FloatArray:
    if type is ScalarType.FLOAT64:
        return np.nextafter(start, toward)
    mantissa, exponent = np.frexp(np.abs(start))
    inward = np.abs(toward) < np.abs(start)
    inward = inward | (np.signbit(toward) != np.signbit(start))
    spacing = np.ldexp(2.0 * type.unit_roundoff, exponent - 1)
    spacing = np.where(inward & (mantissa == 0.5), spacing * 0.5, spacing)  # numbers lie denser below a power of two
    spacing = np.maximum(spacing, type.smallest_subnormal)
    moved = np.copysign(np.where(inward, np.abs(start) - spacing, np.abs(start) + spacing), start)
    threshold = overflow_threshold(type)
    largest = threshold - type.unit_roundoff * 2.0 ** (math.frexp(threshold)[1] - 1)
    moved = np.where(np.isinf(start), np.copysign(largest, start), moved)
    moved = np.where(start == 0, np.copysign(type.smallest_subnormal, toward), moved)
    moved = np.where(np.abs(moved) >= threshold, np.copysign(np.inf, moved), moved)
    return np.where(start == toward, toward, np.where(np.isnan(start) | np.isnan(toward), np.nan, moved))


def norm(*operands: Bounded) -> Bounded:
    """``hypot`` and the norms: each operand's error carries over at most whole."""
    value = np.abs(operands[0].value)
    for operand in operands[1:]:
        value = np.hypot(value, operand.value)
    error = sum((operand.error for operand in operands), np.zeros(()))
    return _combined(value, np.where(np.isfinite(value), error, 0.0), *operands)


def power(base: Bounded, exponent: Bounded) -> Bounded:
    """On a box of positive bases the extremes lie at the corners; below 0 only certain integers are exponents."""
    value = np.power(base.value, exponent.value)
    if _are_exact((base, exponent)):
        return _combined(value, np.zeros(()), base, exponent)
    error = np.zeros(())
    for low in (base.value - base.error, base.value + base.error):
        for high in (exponent.value - exponent.error, exponent.value + exponent.error):
            error = np.maximum(error, distance(np.power(low, high), value))
    crosses = (np.abs(base.value) <= base.error) & (base.error > 0)
    fixed = (exponent.error == 0) & (np.trunc(exponent.value) == exponent.value)
    at_zero = distance(np.power(0.0, exponent.value), value)
    error = np.where(crosses, np.where(fixed, np.maximum(error, at_zero), np.inf), error)
    # A negative base turns every exponent between two integers into NaN.
    return _combined(value, np.where((base.value < 0) & (exponent.error > 0), np.inf, error), base, exponent)
