"""What the builtin functions contribute to the adjoints of their arguments.

Where a derivative does not exist, *Conventions of gradients* in ``docs/gradients.md`` says what is taken for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from tc.grammar.syntax import BinaryOperator
from tc.gradient.terms import call, choice, compared, is_number, minus, negated, number, over, plus, times
from tc.language.program.program import Expression, Literal, reads_in

# The products of an adjoint with the partial derivatives by each argument; None: that one is 0 wherever it exists.
# Given the adjoint, the arguments, and the value of the call.
Contributions: TypeAlias = tuple[Expression | None, ...]
Rule: TypeAlias = Callable[[Expression, tuple[Expression, ...], Expression], Contributions]


def _n(value: float, like: Expression) -> Literal:
    return number(value, like.type)


def _one(derivative: Callable[[Expression, Expression], Expression]) -> Rule:
    """A function of one argument, of which the derivative is known as a factor."""
    return lambda adjoint, arguments, value: (times(adjoint, derivative(arguments[0], value)),)


def _over(divisor: Callable[[Expression, Expression], Expression]) -> Rule:
    """A function of one argument, of which the derivative is known as a divisor."""
    return lambda adjoint, arguments, value: (over(adjoint, divisor(arguments[0], value)),)


def _square(x: Expression) -> Expression:
    return times(x, x)


def _sign(x: Expression, adjoint: Expression) -> Expression:
    """The adjoint with the sign of ``x``; 0 where that is 0."""
    zero = _n(0, x)
    rest = choice(compared(BinaryOperator.LESS, x, zero), negated(adjoint), _n(0, adjoint))
    return choice(compared(BinaryOperator.GREATER, x, zero), adjoint, rest)


def _abs(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    return (_sign(arguments[0], adjoint),)


def _extreme(operator: BinaryOperator) -> Rule:
    """``min`` and ``max``: to the argument that is chosen; where both are equal, half each, and 0 beside a constant."""

    def rule(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
        left, right = arguments
        zero, half = _n(0, adjoint), times(_n(0.5, adjoint), adjoint)

        def share(own: Expression, other: Expression) -> Expression:
            is_constant = not any(True for _ in reads_in(other))
            tie = zero if is_constant else choice(compared(BinaryOperator.EQUAL, own, other), half, zero)
            return choice(compared(operator, own, other), adjoint, tie)

        return share(left, right), share(right, left)

    return rule


def _fdim(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    x, y = arguments
    inside = choice(compared(BinaryOperator.GREATER, x, y), adjoint, _n(0, adjoint))
    return inside, negated(inside)


def _pow(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    x, y = arguments
    one, zero = _n(1, x), _n(0, x)
    base = times(times(adjoint, y), x if is_number(y, 2) else call("pow", x, minus(y, one)))
    if not isinstance(y, Literal):
        base = choice(compared(BinaryOperator.EQUAL, y, zero), _n(0, adjoint), base)
    exponent = times(adjoint, times(value, call("log", x)))
    return base, choice(compared(BinaryOperator.EQUAL, value, zero), _n(0, adjoint), exponent)


def _atan2(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    y, x = arguments
    square = plus(_square(x), _square(y))
    return over(times(adjoint, x), square), negated(over(times(adjoint, y), square))


def _norm(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    return tuple(times(adjoint, over(x, value)) for x in arguments)


def _reciprocal_norm(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    cube = times(value, _square(value))
    return tuple(negated(times(adjoint, times(x, cube))) for x in arguments)


def _fdivide(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    return over(adjoint, arguments[1]), negated(over(times(adjoint, value), arguments[1]))


def _fma(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    x, y, _ = arguments
    return times(adjoint, y), times(adjoint, x), adjoint


def _fmod(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    x, y = arguments
    return adjoint, negated(times(adjoint, call("trunc", over(x, y))))


def _remainder(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    # The quotient is the integer that was taken, which the value tells without rounding anew.
    x, y = arguments
    return adjoint, negated(times(adjoint, call("round", over(minus(x, value), y))))


def _copysign(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    x, _ = arguments
    same = compared(BinaryOperator.EQUAL, value, x)
    kept = choice(same, adjoint, negated(adjoint))
    return choice(compared(BinaryOperator.EQUAL, x, _n(0, x)), _n(0, adjoint), kept), None


def _first_order(zeroth: str) -> Rule:
    """A Bessel function of order 1: the one of order 0 less the quotient of its value and ``x``, which is 1/2 at 0."""

    def derivative(x: Expression, value: Expression) -> Expression:
        elsewhere = minus(call(zeroth, x), over(value, x))
        return choice(compared(BinaryOperator.EQUAL, x, _n(0, x)), _n(0.5, x), elsewhere)

    return _one(derivative)


def _nothing(adjoint: Expression, arguments: tuple[Expression, ...], value: Expression) -> Contributions:
    return (None,) * len(arguments)


def _gauss(factor: float) -> Callable[[Expression, Expression], Expression]:
    """``factor * exp(-x * x)``."""
    return lambda x, value: times(_n(factor, x), call("exp", negated(_square(x))))


def _inverse_gauss(factor: float) -> Callable[[Expression, Expression], Expression]:
    """``factor * exp(value * value)``."""
    return lambda x, value: times(_n(factor, x), call("exp", _square(value)))


_PI: Final = math.pi
_ROOT_PI: Final = math.sqrt(math.pi)
_BELL: Final = 1 / math.sqrt(2 * math.pi)

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "abs": _abs,
        "acos": _one(lambda x, v: negated(call("rsqrt", minus(_n(1, x), _square(x))))),
        "acosh": _one(lambda x, v: call("rsqrt", times(minus(x, _n(1, x)), plus(x, _n(1, x))))),
        "asin": _one(lambda x, v: call("rsqrt", minus(_n(1, x), _square(x)))),
        "asinh": _one(lambda x, v: call("rsqrt", plus(_square(x), _n(1, x)))),
        "atan": _over(lambda x, v: plus(_square(x), _n(1, x))),
        "atan2": _atan2,
        "atanh": _over(lambda x, v: minus(_n(1, x), _square(x))),
        "cbrt": _over(lambda x, v: times(_n(3, x), _square(v))),
        "ceil": _nothing,
        "copysign": _copysign,
        "cos": _one(lambda x, v: negated(call("sin", x))),
        "cosh": _one(lambda x, v: call("sinh", x)),
        "cospi": _one(lambda x, v: times(_n(-_PI, x), call("sinpi", x))),
        "cyl_bessel_i0": _one(lambda x, v: call("cyl_bessel_i1", x)),
        "cyl_bessel_i1": _first_order("cyl_bessel_i0"),
        "erf": _one(_gauss(2 / _ROOT_PI)),
        "erfc": _one(_gauss(-2 / _ROOT_PI)),
        "erfcinv": _one(_inverse_gauss(-_ROOT_PI / 2)),
        "erfcx": _one(lambda x, v: minus(times(times(_n(2, x), x), v), _n(2 / _ROOT_PI, x))),
        "erfinv": _one(_inverse_gauss(_ROOT_PI / 2)),
        "exp": _one(lambda x, v: v),
        "exp10": _one(lambda x, v: times(_n(math.log(10), x), v)),
        "exp2": _one(lambda x, v: times(_n(math.log(2), x), v)),
        "expm1": _one(lambda x, v: plus(v, _n(1, x))),
        "fabs": _abs,
        "fdim": _fdim,
        "fdivide": _fdivide,
        "floor": _nothing,
        "fma": _fma,
        "fmax": _extreme(BinaryOperator.GREATER),
        "fmin": _extreme(BinaryOperator.LESS),
        "fmod": _fmod,
        "hypot": _norm,
        "j0": _one(lambda x, v: negated(call("j1", x))),
        "j1": _first_order("j0"),
        "log": _over(lambda x, v: x),
        "log10": _over(lambda x, v: times(_n(math.log(10), x), x)),
        "log1p": _over(lambda x, v: plus(x, _n(1, x))),
        "log2": _over(lambda x, v: times(_n(math.log(2), x), x)),
        "logb": _nothing,
        "max": _extreme(BinaryOperator.GREATER),
        "min": _extreme(BinaryOperator.LESS),
        "norm3d": _norm,
        "norm4d": _norm,
        "normcdf": _one(lambda x, v: times(_n(_BELL, x), call("exp", times(_n(-0.5, x), _square(x))))),
        "normcdfinv": _one(lambda x, v: times(_n(1 / _BELL, x), call("exp", times(_n(0.5, x), _square(v))))),
        "pow": _pow,
        "rcbrt": _one(lambda x, v: times(_n(-1 / 3, x), over(v, x))),
        "remainder": _remainder,
        "rhypot": _reciprocal_norm,
        "rnorm3d": _reciprocal_norm,
        "rnorm4d": _reciprocal_norm,
        "round": _nothing,
        "rsqrt": _one(lambda x, v: times(_n(-0.5, x), over(v, x))),
        "sin": _one(lambda x, v: call("cos", x)),
        "sinh": _one(lambda x, v: call("cosh", x)),
        "sinpi": _one(lambda x, v: times(_n(_PI, x), call("cospi", x))),
        "sqrt": _over(lambda x, v: times(_n(2, x), v)),
        "tan": _one(lambda x, v: plus(_square(v), _n(1, x))),
        "tanh": _one(lambda x, v: minus(_n(1, x), _square(v))),
        "trunc": _nothing,
        "y0": _one(lambda x, v: negated(call("y1", x))),
        "y1": _first_order("y0"),
    }
)
# Functions without a rule, and why.
REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "lgamma": "its derivative, the digamma function, is no builtin",
        "nextafter": "it is no function of real numbers",
        "tgamma": "its derivative, the digamma function, is no builtin",
    }
)
