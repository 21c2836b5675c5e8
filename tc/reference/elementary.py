"""Functions of one float64 array as plain values: NumPy's where it has them, else SciPy's or a definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tc.reference.bounded import FloatArray

Elementary: TypeAlias = Callable[[FloatArray], FloatArray]


def special(name: str) -> Elementary:
    """The function of ``scipy.special`` called ``name``; SciPy is imported when it is first called."""

    def function(x: FloatArray) -> FloatArray:
        import scipy.special

        return np.asarray(getattr(scipy.special, name)(x), dtype=np.float64)

    return function


def with_limit(function: Elementary, limit: float) -> Elementary:
    """C's value at both infinities is ``limit``; SciPy returns NaN or the wrong sign there for some functions."""

    def corrected(x: FloatArray) -> FloatArray:
        return np.where(np.isinf(x), limit, function(x))

    return corrected


def bessel_i1(x: FloatArray) -> FloatArray:
    return np.where(np.isinf(x), x, special("i1")(x))


def erfc(x: FloatArray) -> FloatArray:
    """The C library's: SciPy's loses some hundred units in the last place in the tail."""
    return np.asarray(np.frompyfunc(math.erfc, 1, 1)(x), dtype=np.float64)


def erfcx(x: FloatArray) -> FloatArray:
    """exp(x * x) * erfc(x); below 0, where that is 2 * exp(x * x) - erfcx(-x), SciPy rounds the square."""
    square, rest = _product(x, x)
    reflected = 2.0 * np.exp(square) * (1.0 + rest) - special("erfcx")(-x)
    return np.where((x < 0) & (square < 709.0), reflected, special("erfcx")(x))


def normcdf(x: FloatArray) -> FloatArray:
    """erfc(-x / sqrt(2)) / 2, with a first-order correction for the rounding of the argument."""
    argument, rest = _product(x, np.asarray(_SQRT_HALF))
    rest = rest + x * _SQRT_HALF_REST
    corrected = 0.5 * erfc(-argument) + rest * np.exp(-argument * argument) / np.sqrt(np.pi)
    return np.where(np.abs(x) < 40.0, corrected, 0.5 * erfc(-argument))


# The square root of a half is their sum, to twice the precision of float64.
_SQRT_HALF, _SQRT_HALF_REST = 0.7071067811865476, -4.833646656726457e-17


def _product(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rounded product and what rounding lost, by Dekker's and Veltkamp's splitting."""
    product = x * y
    x_high, y_high = _high(x), _high(y)
    x_low, y_low = x - x_high, y - y_high
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def _high(x: FloatArray) -> FloatArray:
    scaled = (2.0**27 + 1.0) * x
    return scaled - (scaled - x)


def rsqrt(x: FloatArray) -> FloatArray:
    return 1.0 / np.sqrt(x)


def rcbrt(x: FloatArray) -> FloatArray:
    return 1.0 / np.cbrt(x)


def exp10(x: FloatArray) -> FloatArray:
    return np.power(10.0, x)


def sinpi(x: FloatArray) -> FloatArray:
    return _of_half_turns(x, 0)


def cospi(x: FloatArray) -> FloatArray:
    return _of_half_turns(x, 1)


def _of_half_turns(x: FloatArray, shift: int) -> FloatArray:
    """sin(pi * (x + shift / 2)), exact at its zeros: the reduction to an eighth of a turn loses nothing."""
    reduced = np.fmod(x, 2.0)
    quarters = np.round(2.0 * reduced)
    angle = np.pi * (reduced - 0.5 * quarters)
    quadrant = np.mod(quarters + shift, 4.0)
    value = np.where(np.mod(quadrant, 2.0) == 0, np.sin(angle), np.cos(angle))
    return np.where(np.isfinite(x), np.where(quadrant >= 2, -value, value), np.nan)


def round_half_away(x: FloatArray) -> FloatArray:
    whole = np.trunc(x)
    away = np.where(np.abs(x - whole) >= 0.5, np.copysign(1.0, x), 0.0)
    return np.where(np.isfinite(x), whole + away, x)


def logb(x: FloatArray) -> FloatArray:
    """The exponent of a number as an integer; subnormals count as if they were normalized."""
    exponent = np.frexp(x)[1].astype(np.float64) - 1.0
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), exponent, np.abs(x)))


def remainder(x: FloatArray, y: FloatArray) -> FloatArray:
    """IEEE remainder: x minus the multiple of y nearest to it, ties to the even multiple."""
    divisor = np.abs(y)
    rest = np.where(divisor < 2.0**1022, np.fmod(np.abs(x), 2.0 * divisor), np.abs(x))
    beyond = rest > divisor - rest
    rest = np.where(beyond, rest - divisor, rest)
    rest = np.where(beyond & (rest >= divisor - rest), rest - divisor, rest)
    invalid = ~np.isfinite(x) | np.isnan(y) | (divisor == 0)
    return np.where(invalid, np.nan, np.copysign(1.0, x) * rest)
