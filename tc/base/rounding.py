"""Rounding to the floating-point types that have fewer bits than a double."""

from __future__ import annotations

import math

from tc.base.types import ScalarType


def round_to(value: float, type: ScalarType) -> float:
    """The value rounded to nearest, ties to even, in a floating type.

    Beyond the largest number it is infinite, or NaN in a type without infinities.
    """
    if type is ScalarType.FLOAT64 or value == 0.0 or math.isnan(value):
        return value
    if math.isfinite(value):
        # Scaling by a power of two is exact, so this rounds once.
        quantum = max(math.ldexp(type.unit_roundoff, math.frexp(value)[1]), type.smallest_subnormal)
        value = math.copysign(round(value / quantum) * quantum, value)
        if abs(value) <= type.largest:
            return value
    return overflowed(value, type)


def overflowed(value: float, type: ScalarType) -> float:
    """What a number beyond the largest one becomes: infinity of its sign, or NaN where there are none."""
    return math.copysign(math.inf, value) if type.has_infinities else math.nan
