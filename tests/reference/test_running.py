"""Running totals of the oracle: the same values and bounds as term by term, in as many steps as there are terms."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tc

CASES = {
    "a triangle": ("float", "y(n,i) +=! x(n,j) where j in 0:i+1"),
    "products, turned": ("float", "y(i,n) *=! x(n,j) where i in 0:M, j in 0:i"),
    "from the back": ("double", "y(n,i) +=! x(n,j) where i in 0:M, j in i:M"),
    "the greatest of those behind": ("float", "y(n,i) max=! x(n,j) where i in 0:M, j in i+1:M"),
    "products of halves": ("float16", "y(n,i) +=! x(n,j) * x(n,j) where i in 0:M, j in 0:M, j <= i"),
    "a condition": ("int32", "y(n,i) +=! x(n,j) where i in 0:M, j in 0:M, 2*i-j >= 3"),
    "a strict one": ("int32", "y(n,i) min=! x(n,j) where i in 0:M, j in 0:M, i < j"),
    "several": ("uint8", "y(n,i) *=! x(n,j) where i in 0:M, j in 0:M, -j > -i, n + j < 30"),
    "two ends": ("int64", "y(n,i) +=! x(n,j) where i in 0:M, j in 0:i+1, j < 2*i"),
    "other reduced iterators": ("float", "y(i) +=! x(n,j) where i in 0:M, j in 0:i+1, j%3 == 1"),
    "two dimensions": ("float", "y(i,k) +=! x(j,l) where i in 0:N, j in 0:i+1, k in 0:M, l in 0:k+1"),
    "quotients": ("bfloat16", "y(n,i) +=! x(n,j) where i in 0:20, j in 2*i/3:M"),
    "an update": ("float", "y(n,i) = x(n,i)  y(n,i) += x(n,j) where i in 0:M, j in 0:i"),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_bounds_are_those_of_all_terms(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    type, body = CASES[name]
    f = tc.define(f"def f({type}(N,M) x) -> (y) {{ {body} }}").single()
    rng = np.random.default_rng(0)
    values = rng.integers(0, 7, (5, 37)) if "int" in type else rng.standard_normal((5, 37))
    x = values.astype({"float": "float32", "double": "float64", "bfloat16": ml_dtypes.bfloat16}.get(type, type))
    found = f.oracle(x)["y"]
    monkeypatch.setattr("tc.reference.evaluate.running", lambda _frame: None)
    expected = f.oracle(x)["y"]
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.error, expected.error, rtol=1e-6)
    np.testing.assert_array_equal(found.ambiguous, expected.ambiguous)


def test_a_long_one_takes_no_time_for_pairs() -> None:
    f = tc.define("def f(double(N) x) -> (y) { y(i) +=! x(j) where i in 0:N, j in 0:i+1 }").f
    x = np.random.default_rng(1).standard_normal(100_000)
    found = f.oracle(x)["y"]
    exact = np.cumsum(x.astype(np.longdouble)).astype(np.float64)
    assert np.abs(found.values - exact).max() < 1e-12


def test_terms_that_depend_on_the_element_are_all_computed() -> None:
    f = tc.define("def f(float(N) x) -> (y) { y(i) +=! x(j) * i where i in 0:N, j in 0:i+1 }").f
    np.testing.assert_array_equal(f.reference(np.ones(4, np.float32)), [0, 2, 6, 12])
