"""The oracle works in windows, says what it needs, and refuses what is too large before it begins."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tc
from tc.reference import windows
from tc.reference.evaluate import Result

PROGRAMS = {
    "product": ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", ((37, 5), (5, 41))),
    "added": ("def f(float(M,N) A, float(M,N) B) -> (C) { C(m,n) = A(m,n) C(m,n) += A(m,n) * B(m,r) }", ((9, 31),) * 2),
    "strided": ("def f(float(N) x) -> (y) { y(i) = 0.0 where i in 0:2*N y(2*i+1) += x(i) }", ((99,),)),
    "reversed": ("def f(float(N,K) x) -> (y) { y(N-1-i) max=! x(i,k) }", ((50, 7),)),
    "triangle": ("def f(float(N,N) x) -> (y) { y(i,j) +=! x(i,k) where k in 0:i+1, j in 0:N }", ((23, 23),)),
    "diagonal": ("def f(float(N,N) x) -> (y) { y(i) +=! x(i,j) where j >= i }", ((23, 23),)),
    "whole": ("def f(float(N) x) -> (s) { s min=! x(i) }", ((1000,),)),
    "histogram": ("def f(float(N) x) -> (y) { y(i) = 0.0 where i in 0:7 y(i%7) += x(i) where i in 0:N }", ((100,),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_windows_change_no_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers, so that every order of additions gives the same bits."""
    text, shapes = PROGRAMS[name]
    random = np.random.default_rng(1)
    arguments = [random.integers(-9, 9, shape).astype(np.float32) for shape in shapes]

    def results() -> list[Result]:
        return list(tc.define(text).f.oracle(*arguments).values())

    whole = results()
    monkeypatch.setattr(windows, "_MOST", 10)
    for one, other in zip(whole, results(), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_allclose(one.error, other.error, rtol=1e-9)
        np.testing.assert_array_equal(one.ambiguous, other.ambiguous)


def test_memory_does_not_exceed_what_is_said() -> None:
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
    a, b = np.ones((1500, 2), np.float32), np.ones((2, 1400), np.float32)
    with pytest.raises(tc.TooLargeError) as refused:
        mm.oracle(a, b, memory=1)
    megabytes = float(str(refused.value).split("needs ")[1].split(" MiB")[0])
    tracemalloc.start()
    try:
        mm.oracle(a, b, memory=round((megabytes + 1) * 2**20))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.3 * megabytes < peak / 2**20 <= 1.1 * megabytes


def test_what_is_too_large_is_refused_before_anything_is_computed() -> None:
    outer = tc.define("def outer(float(M) a, float(N) b) -> (C) { C(m,n) = a(m) * b(n) }").outer
    a = np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (10**6,), (4 * 0,))
    with pytest.raises(
        tc.TooLargeError,
        match=r"^outer: the oracle, which computes what is right, needs 22\.7 TiB of memory for these sizes, and may "
        r"take .* \(a quarter of what there is, unless you say otherwise\); choose smaller sizes, those of "
        r"C \(1000000 x 1000000\) first$",
    ):
        outer.reference(np.ascontiguousarray(a), np.ascontiguousarray(a))
