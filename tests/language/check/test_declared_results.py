"""Results that say their type and sizes."""

from __future__ import annotations

import numpy as np
import pytest

import tc

CAST = "def cast(float(M,N) A, int32 c) -> (int32(M,N) O1) { O1(m,n) = int32(A(m,n) + c) }"


def test_declared_results_mean_what_undeclared_ones_mean() -> None:
    a = np.array([[1.5, -2.5, 7.0]], np.float32)
    plain = CAST.replace("int32(M,N) O1)", "O1)")
    for text in (CAST, plain):
        result = tc.define(text).cast(a, 2)
        np.testing.assert_array_equal(result, np.array([[3, 0, 9]], np.int32))
    assert tc.define(CAST).cast.program == tc.define(plain).cast.program


def test_a_zero_dimensional_result_needs_no_sizes() -> None:
    text = "def total(float(N) A) -> (float s) { s +=! A(i) }"
    assert tc.define(text).total(np.ones(5, np.float32)) == 5


def test_declared_sizes_are_conditions_of_the_call() -> None:
    text = "def f(float(N) A, float(M) B) -> (float(M) C) { C(i) = A(i+1) + A(i) }"
    function = tc.define(text).f
    a, b = np.arange(5, dtype=np.float32), np.zeros(4, np.float32)
    np.testing.assert_array_equal(function(a, b), a[1:] + a[:-1])
    with pytest.raises(
        tc.ArgumentError, match=r"f: `M == N - 1` does not hold for .*: the result C is declared with the size M"
    ):
        function(a, np.zeros(3, np.float32))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def f(float(N) A) -> (int32(N) C) { C(i) = A(i) }",
            "the result `C` is declared int32, its statements write float32",
        ),
        (
            "def f(float(N) A) -> (float(N,N) C) { C(i) = A(i) }",
            "the result `C` is declared with 2 dimensions, its statements give it 1",
        ),
        ("def f(float(N) A) -> (float(K) C) { C(i) = A(i) }", "no parameter has the size `K`"),
        (
            "def f(float(N) A) -> (flot(N) C) { C(i) = A(i) }",
            "the result `C` is declared flot, its statements write float32",
        ),
    ],
)
def test_declarations_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(tc.SemanticError) as caught:
        tc.define(text)
    assert caught.value.diagnostics[0].message == message
