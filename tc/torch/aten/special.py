"""Special functions, and those that look at how numbers are rounded or represented."""

from __future__ import annotations

import math
from typing import Final

import torch

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import pointwise
from tc.torch.aten.elementwise import formula
from tc.torch.fx.operation import Operation, Rule, Rules, UnclaimedError

aten: Final = torch.ops.aten

_TO_EVEN: Final = "abs(round({0}) - {0}) == 0.5 ? 2 * round({0} / 2) : round({0})"


def _rounded(operation: Operation) -> Value:
    """To the nearest integer, and of two to the even one."""
    own = operation.value("self")
    return formula(operation, "round", _TO_EVEN, [own], operation.type) if own.type.is_floating else own


def _rounded_to_decimals(operation: Operation) -> Value:
    own, decimals = operation.value("self"), operation.integer("decimals")
    if not own.type.is_floating:
        if decimals < 0:
            raise UnclaimedError("rounds integers to tens")
        return own
    factor = f"{10.0 ** abs(decimals):.17g}"
    there, back = ("*", "/") if decimals > 0 else ("/", "*")
    inner = _TO_EVEN.replace("{0}", f"({{0}} {there} {factor})")
    return formula(operation, "round", f"({inner}) {back} {factor}", [own], operation.type)


def _is_negative(operation: Operation) -> Value:
    own = operation.value("self")
    text = "copysign(1.0, {0}) < 0" if own.type.is_floating else "{0} < 0"
    return pointwise(operation.builder, "signbit", text, [own], ScalarType.BOOL)


def _angle(operation: Operation) -> Value:
    text = f"{{0}} < 0 ? {math.pi!r} : {{0}} != {{0}} ? {{0}} : 0"
    return formula(operation, "angle", text, [operation.value("self")], operation.type)


def _in_double(name: str, expression: str) -> Rule:
    """Computed in float64, whatever the type of the result is."""

    def rule(operation: Operation) -> Value:
        text = expression.replace("{x}", "float64({0})")
        return pointwise(operation.builder, name, text, [operation.value("self")], operation.type)

    return rule


def _plain(function: str) -> Rule:
    return _in_double(function, f"{function}({{x}})")


# Of the logarithm of the gamma function, the derivative: an asymptotic series 10 steps above, and by reflection below
# 0.  At 0 it is infinite, and at negative integers it is not a number.
_POSITIVE: Final = "({x} < 0 ? 1 - {x} : {x})"
_ABOVE: Final = f"({_POSITIVE} + 10)"
_SQUARE: Final = f"({_ABOVE} * {_ABOVE})"
_SERIES: Final = " + ".join(
    f"({number}) / {' / '.join([_SQUARE] * power)}"
    for power, number in enumerate(("-1.0 / 12", "1.0 / 120", "-1.0 / 252", "1.0 / 240", "-1.0 / 132"), 1)
)
_STEPS: Final = " + ".join(f"1 / ({_POSITIVE} + {step})" for step in range(10))
_FRACTION: Final = f"({math.pi!r} * ({{x}} - trunc({{x}})))"
_DIGAMMA: Final = (
    "{x} == 0 ? copysign(1.0 / 0.0, -{x}) : {x} < 0 && {x} == trunc({x}) ? 0.0 / 0.0 : "
    f"log({_ABOVE}) - 0.5 / {_ABOVE} + {_SERIES} - ({_STEPS}) - ({{x}} < 0 ? {math.pi!r} / tan{_FRACTION} : 0)"
)
# Modified Bessel functions times the exponential that they grow with: those themselves, where they are finite.
_ROOT: Final = f"sqrt({2 * math.pi!r} * abs({{x}}))"
_SCALED: Final = "abs({x}) < 500 ? {function}({x}) * exp(-abs({x})) : {sign}({series}) / " + _ROOT


def _scaled(function: str, sign: str, *numbers: float) -> str:
    series = " + ".join(f"({number!r}) / {' / '.join(['abs({x})'] * power)}" for power, number in enumerate(numbers, 1))
    text = _SCALED.replace("{function}", function).replace("{sign}", sign)
    return text.replace("{series}", f"1 + {series}")


_I0E: Final = _scaled("cyl_bessel_i0", "", 1 / 8, 9 / 128, 225 / 3072, 11025 / 98304)
_I1E: Final = _scaled("cyl_bessel_i1", "copysign(1.0, {x}) * ", -3 / 8, -15 / 128, -315 / 3072, -14175 / 98304)
_LOG_NORMAL: Final = (
    "{x} < -1 ? log(erfcx({x} * -0.7071067811865476) / 2) - {x} * {x} / 2 : log1p(-erfc({x} * 0.7071067811865476) / 2)"
)


RULES: Final[Rules] = {
    aten.round.default: _rounded,
    aten.round.decimals: _rounded_to_decimals,
    aten.signbit.default: _is_negative,
    aten.angle.default: _angle,
    aten.digamma.default: _in_double("digamma", _DIGAMMA),
    aten.i0.default: _plain("cyl_bessel_i0"),
    aten.special_i0e.default: _in_double("i0e", _I0E),
    aten.special_i1.default: _plain("cyl_bessel_i1"),
    aten.special_i1e.default: _in_double("i1e", _I1E),
    aten.special_modified_bessel_i0.default: _plain("cyl_bessel_i0"),
    aten.special_modified_bessel_i1.default: _plain("cyl_bessel_i1"),
    aten.special_bessel_j0.default: _plain("j0"),
    aten.special_bessel_j1.default: _plain("j1"),
    aten.special_bessel_y0.default: _plain("y0"),
    aten.special_bessel_y1.default: _plain("y1"),
    aten.special_erfcx.default: _plain("erfcx"),
    aten.special_ndtri.default: _plain("normcdfinv"),
    aten.special_log_ndtr.default: _in_double("log_ndtr", _LOG_NORMAL),
}
