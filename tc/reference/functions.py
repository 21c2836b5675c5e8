"""The builtin functions on bounded values: how far an operand's error carries, and what a kernel's function adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from tc.base.types import ScalarType, computation_type
from tc.grammar.syntax import BinaryOperator
from tc.language.program.functions import FUNCTIONS
from tc.language.program.program import Binary, Call, Cast, Expression, Literal
from tc.reference import arithmetic
from tc.reference.binary_functions import (
    atan2,
    copysign,
    fma,
    fmod,
    nextafter,
    norm,
    positive_difference,
    power,
    remainder,
)
from tc.reference.bounded import (
    EXACT,
    ORACLE_ROUNDOFF,
    Bounded,
    FloatArray,
    distance,
    overflow_threshold,
    roundoff,
)
from tc.reference.elementary import (
    Elementary,
    bessel_i0,
    bessel_i1,
    cospi,
    erfc,
    erfcx,
    exp10,
    j0,
    j1,
    lgamma,
    logb,
    normcdf,
    rcbrt,
    round_half_away,
    rsqrt,
    sinpi,
    special,
    y0,
    y1,
)

Unary: TypeAlias = Callable[[Bounded], Bounded]


def call(name: str, arguments: tuple[Bounded, ...], type: ScalarType) -> Bounded:
    """The builtin ``name`` of settled floating operands, with the error that every backend may make."""
    result = _TYPED[name](*arguments, type) if name in _TYPED else _UNTYPED[name](*arguments)
    ulps = FUNCTIONS[name].ulps
    if ulps == 0:
        return result
    computed = computation_type(type)
    magnitude = np.abs(result.value) + result.error
    scale = np.maximum(magnitude, _FLOORS.get(name, 0.0))
    rounding = ulps * (2.0 * (computed.unit_roundoff + ORACLE_ROUNDOFF) * scale + computed.smallest_subnormal)
    if type.is_half:
        rounding = rounding + type.unit_roundoff * magnitude + type.smallest_subnormal
    if name in _BESSEL:
        rounding = rounding + np.where(np.abs(arguments[0].value) > 8, _bessel_error(type), 0.0)
    error = np.where(np.isfinite(result.value), result.error + rounding, result.error)
    return Bounded(result.value, error, result.ambiguous)


# Near their zeros these lose relative accuracy: their error counts against a magnitude of at least this.
_FLOORS: Final = {"lgamma": 4.0, "j0": 1.0, "j1": 1.0, "y0": 1.0, "y1": 1.0}
_BESSEL: Final = ("j0", "j1", "y0", "y1")


def _bessel_error(type: ScalarType) -> float:
    """The absolute error that CUDA states for arguments above 8."""
    return 5e-12 if type is ScalarType.FLOAT64 else 2.2e-6


def _result(value: FloatArray, error: FloatArray, operand: Bounded) -> Bounded:
    """Nothing is known of the result where nothing is known of the operand."""
    if not operand.is_exact:
        error = np.where(np.isinf(operand.error), np.inf, error)
    return Bounded(value, error, operand.ambiguous)


def _monotone(function: Elementary) -> Unary:
    """Monotone on its domain; an interval that leaves the domain gives NaN at one end, hence an infinite error."""

    def bounded(x: Bounded) -> Bounded:
        value = function(x.value)
        if x.is_exact:
            return Bounded(value, ambiguous=x.ambiguous)
        below, above = function(x.value - x.error), function(x.value + x.error)
        return _result(value, np.maximum(distance(below, value), distance(above, value)), x)

    return bounded


def _even(function: Elementary) -> Unary:
    """Depends on the magnitude, and monotonically."""

    def bounded(x: Bounded) -> Bounded:
        value = function(x.value)
        if x.is_exact:
            return Bounded(value, ambiguous=x.ambiguous)
        magnitude = np.abs(x.value)
        below, above = function(np.maximum(magnitude - x.error, 0.0)), function(magnitude + x.error)
        return _result(value, np.maximum(distance(below, value), distance(above, value)), x)

    return bounded


def _step(function: Unary) -> Unary:
    """Jumps: an error means that the operand lay near a jump."""

    def bounded(x: Bounded) -> Bounded:
        result = function(x)
        if result.is_exact:
            return result
        return Bounded(result.value, result.error, np.logical_or(result.ambiguous, result.error > 0))

    return bounded


def _smooth(function: Elementary, slope: Callable[[Bounded], FloatArray], diameter: float = np.inf) -> Unary:
    """``slope`` bounds the derivative on the operand's interval, ``diameter`` any difference of two values."""

    def bounded(x: Bounded) -> Bounded:
        value = function(x.value)
        if x.is_exact:
            return Bounded(value, ambiguous=x.ambiguous)
        error = np.where(x.error == 0, 0.0, np.minimum(x.error * slope(x), diameter))
        return _result(value, np.where(np.isnan(error), np.inf, error), x)

    return bounded


def _constant(limit: float) -> Callable[[Bounded], FloatArray]:
    return lambda x: np.broadcast_to(limit, x.value.shape)


def _between_poles(function: Elementary, branch: Callable[[FloatArray], FloatArray]) -> Unary:
    """Monotone wherever ``branch`` is constant, with poles in between."""

    def bounded(x: Bounded) -> Bounded:
        result = _monotone(function)(x)
        if x.is_exact:
            return result
        same = (branch(x.value - x.error) == branch(x.value + x.error)) | (x.error == 0)
        return Bounded(result.value, np.where(same, result.error, np.inf), result.ambiguous)

    return bounded


def _y0_slope(x: Bounded) -> FloatArray:
    """|y0'| = |y1|, which falls to its first zero and never exceeds 0.42 beyond it."""
    return np.maximum(np.abs(y1(x.value - x.error)), 0.42)


def _y1_slope(x: Bounded) -> FloatArray:
    """y1' = y0 - y1 / x, each part bounded from its value at the lower end."""
    low = x.value - x.error
    return np.maximum(np.abs(y0(low)), 0.53) + np.maximum(np.abs(y1(low)), 0.42) / low


def _y(function: Elementary, slope: Callable[[Bounded], FloatArray]) -> Unary:
    """Below 0 the C library may return NaN or minus infinity."""

    def bounded(x: Bounded) -> Bounded:
        result = _smooth(function, slope)(x)
        open_ = x.value - x.error < 0
        return Bounded(result.value, np.where(open_, np.inf, result.error), np.logical_or(result.ambiguous, open_))

    return bounded


def _digamma_slope(x: Bounded) -> FloatArray:
    """|lgamma'|, monotone between the poles: the greater of both ends, infinite across a pole."""
    digamma = special("digamma")
    low, high = x.value - x.error, x.value + x.error
    pole = (low <= 0) & (np.floor(low) != np.floor(high))
    return np.where(pole, np.inf, np.maximum(np.abs(digamma(low)), np.abs(digamma(high))))


def _gamma_slope(x: Bounded) -> FloatArray:
    """|gamma'| = |gamma * digamma|; |gamma| is convex between the poles, so its ends bound it too."""
    gamma = special("gamma")
    return np.maximum(np.abs(gamma(x.value - x.error)), np.abs(gamma(x.value + x.error))) * _digamma_slope(x)


def _absolute(x: Bounded) -> Bounded:
    return Bounded(np.abs(x.value), x.error, x.ambiguous)


def _reciprocal_norm(*operands: Bounded) -> Bounded:
    return _between_poles(lambda length: 1.0 / length, np.sign)(norm(*operands))


def _chosen(choose: Callable[[FloatArray, FloatArray], FloatArray]) -> Callable[[Bounded, Bounded], Bounded]:
    return lambda left, right: arithmetic.extremum(choose, left, right)


_MONOTONE: Final[dict[str, Elementary]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cbrt": np.cbrt, "cyl_bessel_i1": bessel_i1, "erf": special("erf"),
    "erfc": erfc, "erfcinv": special("erfcinv"), "erfcx": erfcx, "erfinv": special("erfinv"),
    "exp": np.exp, "exp10": exp10, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log10": np.log10,
    "log1p": np.log1p, "log2": np.log2, "normcdf": normcdf, "normcdfinv": special("ndtri"), "rsqrt": rsqrt,
    "sinh": np.sinh, "sqrt": np.sqrt, "tanh": np.tanh,
}  # fmt: skip

_UNTYPED: Final[dict[str, Callable[..., Bounded]]] = {
    **{name: _monotone(function) for name, function in _MONOTONE.items()},
    "cosh": _even(np.cosh),
    "cyl_bessel_i0": _even(bessel_i0),
    "sin": _smooth(np.sin, _constant(1.0), 2.0),
    "cos": _smooth(np.cos, _constant(1.0), 2.0),
    "sinpi": _smooth(sinpi, _constant(np.pi), 2.0),
    "cospi": _smooth(cospi, _constant(np.pi), 2.0),
    "j0": _smooth(j0, _constant(0.6), 2.0),
    "j1": _smooth(j1, _constant(0.5), 2.0),
    "y0": _y(y0, _y0_slope),
    "y1": _y(y1, _y1_slope),
    "lgamma": _smooth(lgamma, _digamma_slope),
    "tgamma": _smooth(special("gamma"), _gamma_slope),
    "tan": _between_poles(np.tan, lambda x: np.floor(x / np.pi + 0.5)),
    "rcbrt": _between_poles(rcbrt, np.sign),
    "ceil": _step(_monotone(np.ceil)),
    "floor": _step(_monotone(np.floor)),
    "round": _step(_monotone(round_half_away)),
    "trunc": _step(_monotone(np.trunc)),
    "logb": _step(_even(logb)),
    "abs": _absolute,
    "fabs": _absolute,
    "min": _chosen(np.minimum),
    "max": _chosen(np.maximum),
    "fmin": _chosen(np.fmin),
    "fmax": _chosen(np.fmax),
    "atan2": atan2,
    "copysign": copysign,
    "fmod": fmod,
    "pow": power,
    "remainder": remainder,
    **dict.fromkeys(("hypot", "norm3d", "norm4d"), norm),
    **dict.fromkeys(("rhypot", "rnorm3d", "rnorm4d"), _reciprocal_norm),
}

# These take the type of the result as a last argument.
_TYPED: Final[dict[str, Callable[..., Bounded]]] = {
    "fdivide": arithmetic.divide,
    "fdim": positive_difference,
    "fma": fma,
    "nextafter": nextafter,
}


# --- the logistic function ---------------------------------------------------------------------------------------


def logistic_argument(divisor: Expression) -> Expression | None:
    """``z`` of ``1 + exp(z)``; None for another divisor."""
    match divisor:
        case Binary(BinaryOperator.ADD, one, Call("exp", (argument,))) if _is_one(one):
            return argument
        case Binary(BinaryOperator.ADD, Call("exp", (argument,)), one) if _is_one(one):
            return argument
        case _:
            return None


def _is_one(expression: Expression) -> bool:
    match expression:
        case Literal(value):
            return value == 1
        case Cast(operand):
            return _is_one(operand)
        case _:
            return False


def _or_zero(quotient: Bounded, argument: Bounded, type: ScalarType) -> Bounded:
    """The quotient with room for 0, where the exponential may be infinite in its type."""
    with np.errstate(over="ignore"):
        reach = np.exp(argument.value + argument.error) * (1.0 + 8.0 * roundoff(type))
    infinite = (reach >= overflow_threshold(type)) & np.isfinite(quotient.value)
    if not infinite.any():
        return quotient
    error = np.where(infinite, np.maximum(quotient.error, np.abs(quotient.value)), quotient.error)
    return Bounded(quotient.value, error, quotient.ambiguous)


def over_logistic(dividend: Bounded, argument: Bounded, type: ScalarType) -> Bounded:
    """``dividend / (1 + exp(argument))``; both are settled.

    Errors of the parts would grow from step to step: by ``exp``, and a divisor whose bound reaches 0 says nothing.
    With the roundings of its parts where they are, and the error of the argument by the mean value theorem: the
    derivative is ``exp(z) / (1 + exp(z))**2``, which is 1/4 at most, and falls with the distance from 0.
    """
    exact = Bounded(argument.value, EXACT, argument.ambiguous)
    divisor = arithmetic.add(Bounded(np.ones(())), call("exp", (exact,), type), type)
    found = _or_zero(arithmetic.divide(dividend, divisor, type), argument, type)
    if argument.is_exact:
        return found
    nearest = np.exp(-np.maximum(np.abs(argument.value) - argument.error, 0.0))
    moved = np.minimum(argument.error * nearest / np.square(1.0 + nearest), 1.0)
    moved = moved * (np.abs(dividend.value) + dividend.error)
    # Roundings are relative to what is rounded, which moved with the argument: three operations, one of two units.
    moved = moved * (1.0 + 8.0 * roundoff(type))
    # What is infinite or NaN by itself stays so, wherever the argument is near its value.
    error = np.where(np.isinf(argument.error), np.inf, found.error + np.where(np.isnan(moved), 0.0, moved))
    return Bounded(found.value, error, found.ambiguous)
