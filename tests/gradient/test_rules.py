"""The derivative of every builtin function, beside differences of mpmath's values."""

from __future__ import annotations

import re
from typing import Final

import mpmath
import numpy as np
import pytest

import tc
from tc.gradient.builtin_rules import REFUSED, RULES
from tc.language.program.functions import FUNCTIONS
from tests.gradient.differences import as_array, as_tuple

_TWO: Final = ([0.7, 1.3], [-2.5, 0.4], [3.25, -1.5])
# Where functions are defined that are not so everywhere.
_POINTS: Final[dict[str, tuple[list[float], ...]]] = {
    "acosh": ([1.5], [4.0]),
    "acos": ([-0.5], [0.3]),
    "asin": ([-0.5], [0.3]),
    "atanh": ([-0.5], [0.3]),
    "erfcinv": ([0.3], [1.7]),
    "erfinv": ([-0.5], [0.3]),
    "log": ([0.3], [4.0]),
    "log10": ([0.3], [4.0]),
    "log1p": ([-0.3], [4.0]),
    "log2": ([0.3], [4.0]),
    "normcdfinv": ([0.3], [0.8]),
    "pow": ([0.7, 1.3], [2.5, -0.4], [3.25, 2.0]),
    "rsqrt": ([0.3], [4.0]),
    "sqrt": ([0.3], [4.0]),
    "y0": ([0.3], [4.0]),
    "y1": ([0.3], [4.0]),
    "fma": ([0.7, 1.3, -2.0], [-2.5, 0.4, 3.0]),
    "norm3d": ([0.7, 1.3, -2.0],),
    "rnorm3d": ([0.7, 1.3, -2.0],),
    "norm4d": ([0.7, 1.3, -2.0, 0.25],),
    "rnorm4d": ([0.7, 1.3, -2.0, 0.25],),
}
_JUMP_NOWHERE_HERE: Final = ([-2.3], [0.4], [5.6])


def _points(name: str) -> tuple[list[float], ...]:
    if name in _POINTS:
        return _POINTS[name]
    return _TWO if FUNCTIONS[name].arity == 2 else _JUMP_NOWHERE_HERE


def _definition(name: str) -> tc.Comprehension:
    letters = "abcd"[: FUNCTIONS[name].arity]
    parameters = ", ".join(f"double(N) {letter}" for letter in letters)
    call = ", ".join(f"{letter}(i)" for letter in letters)
    return tc.define(f"def f({parameters}) -> (r) {{ r(i) = {name}({call}) }}").single()


@pytest.mark.parametrize("name", sorted(RULES))
def test_rules_agree_with_differences(name: str) -> None:
    f = _definition(name)
    for point in _points(name):
        arguments = [np.array([value]) for value in point]
        found = f.gradient()(*arguments, np.ones(1))
        for number, part in enumerate(as_tuple(found)):
            assert float(part[0]) == pytest.approx(_slope(f, point, number), rel=1e-6, abs=1e-9), (point, number)


def _slope(f: tc.Comprehension, point: list[float], number: int) -> float:
    """By the oracle's values, which mpmath gives: five places, an error of the fourth order."""
    step = 1e-3

    def value(distance: float) -> float:
        moved = [np.array([x + (distance if n == number else 0)]) for n, x in enumerate(point)]
        return float(np.asarray(f.reference(*moved))[0])

    return (8 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12 * step)


def test_every_builtin_has_a_rule_or_a_reason() -> None:
    assert RULES.keys() | REFUSED.keys() == FUNCTIONS.keys()
    assert not RULES.keys() & REFUSED.keys()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refusals_name_the_function(name: str) -> None:
    with pytest.raises(tc.GradientError, match=re.escape(f"`{name}` has no gradient: {REFUSED[name]}")):
        _definition(name).gradient()


def test_functions_of_what_is_not_asked_for_need_no_rule() -> None:
    f = tc.define("def f(double(N) a, double(N) b) -> (r) { r(i) = a(i) * lgamma(b(i)) }").single()
    b = np.array([2.5])
    np.testing.assert_allclose(as_array(f.gradient("a")(np.ones(1), b, np.ones(1))), [float(mpmath.loggamma(2.5))])


@pytest.mark.parametrize(
    ("expression", "points", "wanted"),
    [
        ("abs(x(i))", [-2, 0, 3], [-1, 0, 1]),
        ("fmax(x(i), 0)", [-2, 0, 3], [0, 0, 1]),
        ("fmin(x(i), 1)", [-2, 1, 3], [1, 0, 0]),
        ("fmin(fmax(x(i), 0), 6)", [-1, 0, 3, 6, 7], [0, 0, 1, 0, 0]),
        ("x(i) > 0 ? x(i) : 0", [-2, 0, 3], [0, 0, 1]),
        ("floor(x(i)) + ceil(x(i)) + round(x(i)) + trunc(x(i))", [0.3, 1], [0, 0]),
        ("fmod(x(i), 2)", [0.5, 3.5, -3.5], [1, 1, 1]),
        ("pow(x(i), 0)", [0, 2], [0, 0]),
        ("pow(x(i), 2)", [0, 3], [0, 6]),
        ("pow(0, x(i))", [2.0], [0]),
        ("j1(x(i))", [0.0], [0.5]),
        ("double(int32(x(i)))", [2.5], [0]),
        ("copysign(x(i), -1)", [2, -2, 0], [-1, 1, 0]),
        ("fdim(x(i), 1)", [0, 1, 2], [0, 0, 1]),
    ],
)
def test_conventions(expression: str, points: list[float], wanted: list[float]) -> None:
    f = tc.define(f"def f(double(N) x) -> (r) {{ r(i) = {expression} }}").single()
    x = np.array(points, np.float64)
    np.testing.assert_array_equal(f.gradient()(x, np.ones_like(x)), wanted)


def test_two_variables_share_where_they_are_equal() -> None:
    f = tc.define("def f(double(N) a, double(N) b) -> (r) { r(i) = fmax(a(i), b(i)) }").single()
    a, b = np.array([1.0, 2, 3]), np.array([2.0, 2, 2])
    first, second = as_tuple(f.gradient()(a, b, np.array([1.0, 4, 1])))
    np.testing.assert_array_equal(first, [0, 2, 1])
    np.testing.assert_array_equal(second, [1, 2, 0])


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_beside_nan_the_other_argument_is_the_value(name: str) -> None:
    f = tc.define(f"def f(double(N) a, double(N) b) -> (r) {{ r(i) = {name}(a(i), log(b(i))) }}").single()
    a, b = np.array([1.0, np.nan]), np.array([-1.0, 2])
    first, second = as_tuple(f.gradient()(a, b, np.array([3.0, 4])))
    np.testing.assert_array_equal(first, [3, 0])
    np.testing.assert_array_equal(second, [0, 2])
    change = f.jvp()(a, b, np.array([1.0, 5]), np.array([7.0, 1]))
    np.testing.assert_array_equal(as_tuple(change)[-1], [1, 0.5])
