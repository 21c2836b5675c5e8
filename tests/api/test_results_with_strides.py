"""Kernels compiled ahead of time for results that are not contiguous."""

from __future__ import annotations

import numpy as np
import pytest

import tc

F = tc.ScalarType.FLOAT32
TEXT = "def split(float(M,N) A) -> (S, D) { S(m,n) = A(m,n) + A(m,N-1-n)  D(m,n) = A(m,n) - A(m,N-1-n) }"
SPLIT = tc.define(TEXT)["split"]


def arrays() -> tuple[np.ndarray, np.ndarray]:
    whole = np.zeros((5, 14), np.float32)
    return np.arange(35, dtype=np.float32).reshape(5, 7), whole


def test_a_kernel_writes_to_rows_of_a_larger_array() -> None:
    a, whole = arrays()
    spec = tc.ArraySpec((5, 7), F, (14, 1))
    kernel = SPLIT.compile(a, out=(spec, spec))
    assert kernel is SPLIT.compile(a, out={"S": spec, "D": whole[:, 7:]})
    assert kernel is not SPLIT.compile(a)
    kernel(a, out=(whole[:, :7], whole[:, 7:]))
    np.testing.assert_array_equal(whole, np.hstack((a + a[:, ::-1], a - a[:, ::-1])))
    with pytest.raises(tc.ArgumentError, match="this kernel of split is compiled for"):
        kernel(a)


def test_contiguous_results_make_no_other_kernel() -> None:
    a, _ = arrays()
    assert SPLIT.compile(a, out=(tc.ArraySpec((5, 7), F), None)) is SPLIT.compile(a)


def test_one_result_in_place_and_one_with_strides() -> None:
    a, whole = arrays()
    text = "def f(float(M,N) A) -> (B, C) { B(m,n) = 2 * A(m,n)  C(m,n) = A(m,n) + 1 }"
    f = tc.define(text)["f"]
    kernel = f.compile(a, in_place={"C": "A"}, out={"B": whole[:, :7]})
    before = a.copy()
    kernel(a, out=(whole[:, :7], a))
    np.testing.assert_array_equal(whole[:, :7], 2 * before)
    np.testing.assert_array_equal(a, before + 1)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ({"X": (5, 7)}, "split has no result 'X'"),
        (((5, 7),), "split has 2 results"),
        ((tc.ArraySpec((5, 7), tc.ScalarType.FLOAT64), None), "expected element type float32, got float64"),
        ((tc.ArraySpec((5, 8), F, (14, 1)), None), r"result `S` has shape \(5, 7\), got \(5, 8\)"),
    ],
)
def test_results_that_do_not_fit(out: object, message: str) -> None:
    with pytest.raises(tc.ArgumentError, match=message):
        SPLIT.compile((5, 7), out=out)
