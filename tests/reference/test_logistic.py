"""The logistic function: bounds hold whatever the argument's error is, and stay useful over hundreds of steps."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.base.types import ScalarType
from tc.reference.bounded import Bounded
from tc.reference.compare import compare
from tc.reference.functions import over_logistic
from tests.turns import one_in


@pytest.mark.parametrize("error", [0.0, 1e-6, 1e-2, 1.0, 30.0])
def test_quotients_of_arguments_within_their_error_are_within_the_bound(error: float) -> None:
    random = np.random.default_rng(3)
    z, x = random.uniform(-40, 40, 4000), random.standard_normal(4000)
    found = over_logistic(Bounded(x), Bounded(z, np.asarray(error)), ScalarType.FLOAT32)
    for moved in (z, z - error, z + error, z + random.uniform(-error, error, z.size)):
        kernel = x.astype(np.float32) / (np.float32(1) + np.exp(moved.astype(np.float32)))
        rounded = np.abs(x) * 2.0**-20 * (1 + np.abs(z))  # of the arguments, which are no floats
        assert (np.abs(kernel - found.value) <= found.error + rounded).all()
    assert (found.error <= np.abs(x) * 1.001).all()


@pytest.mark.parametrize("error", [0.0, 1e-4, 0.5])
def test_exponentials_that_are_infinite_make_zeros(error: float) -> None:
    """Where the quotient itself is a number that is not even subnormal, since the dividend is large."""
    random = np.random.default_rng(3)
    z, x = random.uniform(87, 91, 4000), random.uniform(1e3, 1e8, 4000)
    found = over_logistic(Bounded(x), Bounded(z, np.asarray(error)), ScalarType.FLOAT32)
    for moved in (z, z - error, z + error):
        with np.errstate(over="ignore"):
            kernel = x.astype(np.float32) / (np.float32(1) + np.exp(moved.astype(np.float32)))
        rounded = np.abs(found.value) * 2.0**-17
        assert (np.abs(kernel - found.value) <= found.error + rounded).all()
    # Where no exponential is infinite, there is no room for 0.
    assert (found.error[z + error < 88.7] < found.value[z + error < 88.7]).all()


def test_a_gated_layer_is_within_its_bound_where_exponentials_are_infinite() -> None:
    f = tc.define("def f(float(N) a, float(N) b) -> (y) { y(n) = a(n) / (1 + exp(-a(n))) * b(n) }").single()
    a, b = np.linspace(-95, -80, 301, dtype=np.float32), np.full(301, 1e3, np.float32)
    (expected,) = f.oracle(a, b).values()
    comparison = compare(expected, np.asarray(f(a, b)))
    assert comparison.ok, comparison


def test_nothing_is_known_of_the_quotient_where_nothing_is_known_of_the_argument() -> None:
    found = over_logistic(Bounded(np.ones(2)), Bounded(np.zeros(2), np.array([np.inf, 0.0])), ScalarType.FLOAT32)
    assert np.isinf(found.error[0])
    assert found.error[1] < 1e-6


@one_in(3)
@pytest.mark.parametrize("gate", ["1 / (1 + exp(-z(b,i)))", "z(b,i) / (exp(-z(b,i)) + 1)", "tanh(z(b,i))"])
def test_bounds_stay_useful_over_500_steps(gate: str) -> None:
    text = f"""
    def f(float(T,B,H) x, float(H,H) U) -> (h) {{
        h(b,i) = x(0,b,i)
        for t in 0:T {{
            z(b,i) +=! h(b,j) * U(i,j)
            z(b,i) = z(b,i) + x(t,b,i)
            h(b,i) = {gate}
        }}
    }}
    """
    random = np.random.default_rng(5)
    x = random.standard_normal((500, 2, 8)).astype(np.float32)
    u = random.uniform(-0.2, 0.2, (8, 8)).astype(np.float32)
    result = tc.define(text).single().oracle(x, u)["h"]
    assert result.error.max() < 1e-4
    assert not result.ambiguous.any()


def test_what_is_not_finite_by_itself_is_so_for_certain() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1.0, np.inf])
    z = np.array([-np.inf, np.inf, np.nan, np.nan, -np.inf])
    error = np.array([0.0, 0.0, 0.0, 0.0, 1e-3])
    found = over_logistic(Bounded(x), Bounded(z, error), ScalarType.FLOAT32)
    np.testing.assert_array_equal(found.value, [np.inf, np.nan, np.nan, np.nan, np.inf])
    np.testing.assert_array_equal(found.error, 0.0)
