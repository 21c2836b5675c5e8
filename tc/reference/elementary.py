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


def lgamma(x: FloatArray) -> FloatArray:
    """SciPy's overflows too early near 0 and has the wrong sign at minus infinity."""
    near_zero = np.abs(x) < 2.0**-60
    value = np.where(near_zero, -np.log(np.abs(x)), special("gammaln")(x))
    return np.where(np.isinf(x), np.inf, value)


def bessel_i0(x: FloatArray) -> FloatArray:
    """The modified Bessel function of the first kind of order 0."""
    return np.where(np.isinf(x), np.inf, special("i0")(x))


def bessel_i1(x: FloatArray) -> FloatArray:
    """The modified Bessel function of the first kind of order 1."""
    return np.where(np.isinf(x), x, special("i1")(x))


def j0(x: FloatArray) -> FloatArray:
    """The Bessel function of the first kind of order 0."""
    return np.where(np.abs(x) >= _FAR, _far_bessel(np.abs(x), 0)[0], special("j0")(x))


def j1(x: FloatArray) -> FloatArray:
    """The Bessel function of the first kind of order 1."""
    return np.where(np.abs(x) >= _FAR, np.sign(x) * _far_bessel(np.abs(x), 1)[0], special("j1")(x))


def y0(x: FloatArray) -> FloatArray:
    """The Bessel function of the second kind of order 0."""
    return np.where(x >= _FAR, _far_bessel(x, 0)[1], special("y0")(x))


def y1(x: FloatArray) -> FloatArray:
    """The Bessel function of the second kind of order 1."""
    return np.where(x >= _FAR, _far_bessel(x, 1)[1], special("y1")(x))


# Beyond it SciPy's Bessel functions lose their phase, and eight terms of Hankel's expansion are exact to float64.
_FAR = 100.0


def _far_bessel(x: FloatArray, order: int) -> tuple[FloatArray, FloatArray]:
    """J and Y of order 0 or 1 by Hankel's expansion, with sines of the argument itself; 0 at infinity."""
    far = np.where((x >= _FAR) & np.isfinite(x), x, _FAR)
    term, even, odd = np.ones_like(far), np.ones_like(far), np.zeros_like(far)
    for k in range(1, 9):
        term = term * (4.0 * order - (2 * k - 1) ** 2) / (8.0 * k * far)
        sign = -1.0 if k % 4 >= 2 else 1.0
        if k % 2:
            odd = odd + sign * term
        else:
            even = even + sign * term
    sine, cosine = np.sin(far) * _SQRT_HALF, np.cos(far) * _SQRT_HALF
    # Of x - pi / 4 for order 0, of x - 3 pi / 4 for order 1.
    shifted_cosine, shifted_sine = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -sine - cosine)
    amplitude = np.sqrt(2.0 / (np.pi * far))
    j = amplitude * (even * shifted_cosine - odd * shifted_sine)
    y = amplitude * (even * shifted_sine + odd * shifted_cosine)
    return np.where(np.isinf(x), 0.0, j), np.where(np.isinf(x), 0.0, y)


def erfc(x: FloatArray) -> FloatArray:
    """The C library's: SciPy's loses some hundred units in the last place in the tail."""
    return np.asarray(np.frompyfunc(math.erfc, 1, 1)(x), dtype=np.float64)


def erfcx(x: FloatArray) -> FloatArray:
    """The scaled complement: ``exp(x * x) * erfc(x)``.  SciPy rounds the square below 0, where it subtracts."""
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
    """``1 / sqrt(x)``."""
    return 1.0 / np.sqrt(x)


def rcbrt(x: FloatArray) -> FloatArray:
    """``1 / cbrt(x)``."""
    return 1.0 / np.cbrt(x)


def exp10(x: FloatArray) -> FloatArray:
    """``10 ** x``."""
    return np.power(10.0, x)


def sinpi(x: FloatArray) -> FloatArray:
    """``sin(pi * x)``."""
    return _of_half_turns(x, 0)


def cospi(x: FloatArray) -> FloatArray:
    """``cos(pi * x)``."""
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
    """The nearest integer; halves are rounded away from zero."""
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
