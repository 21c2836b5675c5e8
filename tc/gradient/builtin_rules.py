"""What the builtin functions contribute to the adjoints of their arguments.

Where a derivative does not exist, *Conventions of gradients* in ``docs/gradients.md`` says what is taken for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from tc.base.frozen import frozen
from tc.gradient.terms import call, choice, compared, is_number, minus, negated, number, over, plus, times
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Expression, Literal, reads_in

# The products of an adjoint with the partial derivatives by each argument; None: that one is 0 wherever it exists.
Contributions: TypeAlias = tuple[Expression | None, ...]


@frozen
class At:
    """A call whose derivative is wanted: the adjoint of its ``value``, and its arguments.

    ``stored``: the value where it is at hand and what the arguments are made of may not be.
    """

    adjoint: Expression
    arguments: tuple[Expression, ...]
    value: Expression
    stored: Expression | None = None

    @property
    def x(self) -> Expression:
        """The first argument."""
        return self.arguments[0]


Rule: TypeAlias = Callable[[At], Contributions]
Derivative: TypeAlias = Callable[[At], Expression]


def _n(value: float, like: Expression) -> Literal:
    return number(value, like.type)


def _one(derivative: Derivative) -> Rule:
    """A function of one argument, of which the derivative is known as a factor."""
    return lambda at: (times(at.adjoint, derivative(at)),)


def _over(divisor: Derivative) -> Rule:
    """A function of one argument, of which the derivative is known as a divisor."""
    return lambda at: (over(at.adjoint, divisor(at)),)


def _square(x: Expression) -> Expression:
    return times(x, x)


def _sign(x: Expression, adjoint: Expression) -> Expression:
    """The adjoint with the sign of ``x``; 0 where that is 0."""
    zero = _n(0, x)
    rest = choice(compared(BinaryOperator.LESS, x, zero), negated(adjoint), _n(0, adjoint))
    return choice(compared(BinaryOperator.GREATER, x, zero), adjoint, rest)


def _abs(at: At) -> Contributions:
    return (_sign(at.arguments[0], at.adjoint),)


def _extreme(operator: BinaryOperator, *, skips_nan: bool = False) -> Rule:
    """``min`` and ``max``: to the argument that is chosen; where both are equal, half each, and 0 beside a constant.

    ``skips_nan``: beside a NaN, the other argument is chosen.
    """

    def rule(at: At) -> Contributions:
        left, right = at.arguments
        zero, half = _n(0, at.adjoint), times(_n(0.5, at.adjoint), at.adjoint)

        def share(own: Expression, other: Expression) -> Expression:
            is_constant = not any(True for _ in reads_in(other))
            if is_constant and at.stored is not None:  # which is beyond the constant where the argument is
                own = at.stored
            rest: Expression = zero
            if skips_nan and not is_constant:
                rest = choice(compared(BinaryOperator.NOT_EQUAL, other, other), at.adjoint, zero)
            if not is_constant:
                rest = choice(compared(BinaryOperator.EQUAL, own, other), half, rest)
            return choice(compared(operator, own, other), at.adjoint, rest)

        return share(left, right), share(right, left)

    return rule


def _fdim(at: At) -> Contributions:
    x, y = at.arguments
    inside = choice(compared(BinaryOperator.GREATER, x, y), at.adjoint, _n(0, at.adjoint))
    return inside, negated(inside)


def _pow(at: At) -> Contributions:
    x, y = at.arguments
    exponent = times(at.adjoint, times(at.value, call("log", x)))
    exponent = choice(compared(BinaryOperator.EQUAL, at.value, _n(0, x)), _n(0, at.adjoint), exponent)
    if is_number(y, 0):
        return None, exponent
    base = times(times(at.adjoint, y), x if is_number(y, 2) else call("pow", x, minus(y, _n(1, x))))
    if not isinstance(y, Literal):
        base = choice(compared(BinaryOperator.EQUAL, y, _n(0, x)), _n(0, at.adjoint), base)
    return base, exponent


def _atan2(at: At) -> Contributions:
    y, x = at.arguments
    square = plus(_square(x), _square(y))
    return over(times(at.adjoint, x), square), negated(over(times(at.adjoint, y), square))


def _norm(at: At) -> Contributions:
    return tuple(times(at.adjoint, over(x, at.value)) for x in at.arguments)


def _reciprocal_norm(at: At) -> Contributions:
    cube = times(at.value, _square(at.value))
    return tuple(negated(times(at.adjoint, times(x, cube))) for x in at.arguments)


def _fdivide(at: At) -> Contributions:
    return over(at.adjoint, at.arguments[1]), negated(over(times(at.adjoint, at.value), at.arguments[1]))


def _fma(at: At) -> Contributions:
    x, y, _ = at.arguments
    return times(at.adjoint, y), times(at.adjoint, x), at.adjoint


def _fmod(at: At) -> Contributions:
    x, y = at.arguments
    return at.adjoint, negated(times(at.adjoint, call("trunc", over(x, y))))


def _remainder(at: At) -> Contributions:
    # The quotient is the integer that was taken, which the at.value tells without rounding anew.
    x, y = at.arguments
    return at.adjoint, negated(times(at.adjoint, call("round", over(minus(x, at.value), y))))


def _copysign(at: At) -> Contributions:
    x, _ = at.arguments
    same = compared(BinaryOperator.EQUAL, at.value, x)
    kept = choice(same, at.adjoint, negated(at.adjoint))
    return choice(compared(BinaryOperator.EQUAL, x, _n(0, x)), _n(0, at.adjoint), kept), None


def _first_order(zeroth: str) -> Rule:
    """A Bessel function of order 1: the one of order 0 less the quotient of its value and ``x``, which is 1/2 at 0."""

    def derivative(at: At) -> Expression:
        elsewhere = minus(call(zeroth, at.x), over(at.value, at.x))
        return choice(compared(BinaryOperator.EQUAL, at.x, _n(0, at.x)), _n(0.5, at.x), elsewhere)

    return _one(derivative)


def _nothing(at: At) -> Contributions:
    return (None,) * len(at.arguments)


def _gauss(factor: float) -> Derivative:
    """``factor * exp(-x * x)``."""
    return lambda at: times(_n(factor, at.x), call("exp", negated(_square(at.x))))


def _inverse_gauss(factor: float) -> Derivative:
    """``factor * exp(value * value)``."""
    return lambda at: times(_n(factor, at.x), call("exp", _square(at.value)))


_PI: Final = math.pi
_ROOT_PI: Final = math.sqrt(math.pi)
_BELL: Final = 1 / math.sqrt(2 * math.pi)

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "abs": _abs,
        "acos": _one(lambda at: negated(call("rsqrt", minus(_n(1, at.x), _square(at.x))))),
        "acosh": _one(lambda at: call("rsqrt", times(minus(at.x, _n(1, at.x)), plus(at.x, _n(1, at.x))))),
        "asin": _one(lambda at: call("rsqrt", minus(_n(1, at.x), _square(at.x)))),
        "asinh": _one(lambda at: call("rsqrt", plus(_square(at.x), _n(1, at.x)))),
        "atan": _over(lambda at: plus(_square(at.x), _n(1, at.x))),
        "atan2": _atan2,
        "atanh": _over(lambda at: minus(_n(1, at.x), _square(at.x))),
        "cbrt": _over(lambda at: times(_n(3, at.x), _square(at.value))),
        "ceil": _nothing,
        "copysign": _copysign,
        "cos": _one(lambda at: negated(call("sin", at.x))),
        "cosh": _one(lambda at: call("sinh", at.x)),
        "cospi": _one(lambda at: times(_n(-_PI, at.x), call("sinpi", at.x))),
        "cyl_bessel_i0": _one(lambda at: call("cyl_bessel_i1", at.x)),
        "cyl_bessel_i1": _first_order("cyl_bessel_i0"),
        "erf": _one(_gauss(2 / _ROOT_PI)),
        "erfc": _one(_gauss(-2 / _ROOT_PI)),
        "erfcinv": _one(_inverse_gauss(-_ROOT_PI / 2)),
        "erfcx": _one(lambda at: minus(times(times(_n(2, at.x), at.x), at.value), _n(2 / _ROOT_PI, at.x))),
        "erfinv": _one(_inverse_gauss(_ROOT_PI / 2)),
        "exp": _one(lambda at: at.value),
        "exp10": _one(lambda at: times(_n(math.log(10), at.x), at.value)),
        "exp2": _one(lambda at: times(_n(math.log(2), at.x), at.value)),
        "expm1": _one(lambda at: plus(at.value, _n(1, at.x))),
        "fabs": _abs,
        "fdim": _fdim,
        "fdivide": _fdivide,
        "floor": _nothing,
        "fma": _fma,
        "fmax": _extreme(BinaryOperator.GREATER, skips_nan=True),
        "fmin": _extreme(BinaryOperator.LESS, skips_nan=True),
        "fmod": _fmod,
        "hypot": _norm,
        "j0": _one(lambda at: negated(call("j1", at.x))),
        "j1": _first_order("j0"),
        "log": _over(lambda at: at.x),
        "log10": _over(lambda at: times(_n(math.log(10), at.x), at.x)),
        "log1p": _over(lambda at: plus(at.x, _n(1, at.x))),
        "log2": _over(lambda at: times(_n(math.log(2), at.x), at.x)),
        "logb": _nothing,
        "max": _extreme(BinaryOperator.GREATER),
        "min": _extreme(BinaryOperator.LESS),
        "norm3d": _norm,
        "norm4d": _norm,
        "normcdf": _one(lambda at: times(_n(_BELL, at.x), call("exp", times(_n(-0.5, at.x), _square(at.x))))),
        "normcdfinv": _one(lambda at: times(_n(1 / _BELL, at.x), call("exp", times(_n(0.5, at.x), _square(at.value))))),
        "pow": _pow,
        "rcbrt": _one(lambda at: times(_n(-1 / 3, at.x), over(at.value, at.x))),
        "remainder": _remainder,
        "rhypot": _reciprocal_norm,
        "rnorm3d": _reciprocal_norm,
        "rnorm4d": _reciprocal_norm,
        "round": _nothing,
        "rsqrt": _one(lambda at: times(_n(-0.5, at.x), over(at.value, at.x))),
        "sin": _one(lambda at: call("cos", at.x)),
        "sinh": _one(lambda at: call("cosh", at.x)),
        "sinpi": _one(lambda at: times(_n(_PI, at.x), call("cospi", at.x))),
        "sqrt": _over(lambda at: times(_n(2, at.x), at.value)),
        "tan": _one(lambda at: plus(_square(at.value), _n(1, at.x))),
        "tanh": _one(lambda at: minus(_n(1, at.x), _square(at.value))),
        "trunc": _nothing,
        "y0": _one(lambda at: negated(call("y1", at.x))),
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
