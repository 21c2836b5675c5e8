"""The oracle works in windows, says what it needs, and refuses what is too large before it begins."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tc
from tc.language.program.program import Expression
from tc.reference import evaluate, expressions, windows
from tc.reference import memory as need
from tc.reference.access import volume
from tc.reference.bounded import BoolArray, Bounded
from tc.reference.evaluate import Result
from tc.reference.expressions import Frame
from tc.reference.memory import need_of
from tests.turns import one_in

PROGRAMS = {
    "product": ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", ((37, 5), (5, 41))),
    "added": ("def f(float(M,N) A, float(M,N) B) -> (C) { C(m,n) = A(m,n) C(m,n) += A(m,n) * B(m,r) }", ((9, 31),) * 2),
    "strided": ("def f(float(N) x) -> (y) { y(i) = 0.0 where i in 0:2*N y(2*i+1) += x(i) }", ((99,),)),
    "reversed": ("def f(float(N,K) x) -> (y) { y(N-1-i) max=! x(i,k) }", ((50, 7),)),
    "triangle": ("def f(float(N,N) x) -> (y) { y(i,j) +=! x(i,k) where k in 0:i+1, j in 0:N }", ((23, 23),)),
    "diagonal": ("def f(float(N,N) x) -> (y) { y(i) +=! x(i,j) where j >= i }", ((23, 23),)),
    "whole": ("def f(float(N) x) -> (s) { s min=! x(i) }", ((1000,),)),
    "overlap": ("def f(float(N) x, float(K) w) -> (y) { y(i+k) +=! x(i) * w(k) }", ((31,), (4,))),
    "columns": ("def f(float(N,K) x) -> (y) { y(39-i+k/2) +=! x(i,k) where i in 0:40 }", ((40, 5),)),
    "two": ("def f(float(N,K) x) -> (y) { y(i+k%2,k%3) max=! x(i,k) }", ((13, 9),)),
    "in part": ("def f(float(N) x) -> (y) { y(i) = x(i) y(2*i-1) += x(i) where i in 1:N, 2*i <= N }", ((50,),)),
    "twice": ("def f(float(N) x) -> (y) { y(i) = x(i) y(i) = y(i) * y(i) y(i) *= y(i) + 1 y(i) += 1 }", ((50,),)),
    "saved": ("def f(float(N) x) -> (y) { t(i) = x(i) y(i) = t(i) t(i) = y(N-1-i) y(i) = t(i) + y(i) }", ((50,),)),
    "numbers": ("def f(float(N) x) -> (s, t) { s +=! x(i) s = s + 1 t = s * s t += s }", ((50,),)),
    "chain": ("def f(float(N) x) -> (c) { a(i) = x(i) + 1 b(i) = a(i) * a(i) c +=! b(i) + a(N-1-i) }", ((50,),)),
    "histogram": ("def f(float(N) x) -> (y) { y(i) = 0.0 where i in 0:7 y(i%7) += x(i) where i in 0:N }", ((100,),)),
}


@one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_windows_change_no_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers, so that every order of additions gives the same bits."""
    text, shapes = PROGRAMS[name]
    random = np.random.default_rng(1)
    arguments = [random.integers(-9, 9, shape).astype(np.float32) for shape in shapes]

    def results() -> list[Result]:
        return list(tc.define(text).f.oracle(*arguments).values())

    whole = results()
    values = tc.define(text).f.reference(*arguments)
    for given, result in zip(values if isinstance(values, tuple) else (values,), whole, strict=True):
        np.testing.assert_array_equal(given, result.values)
    monkeypatch.setattr(windows, "_MOST", 10)
    monkeypatch.setattr(windows, "MOST_SHARED", 7)
    for one, other in zip(whole, results(), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_allclose(one.error, other.error, rtol=1e-9)
        np.testing.assert_array_equal(one.ambiguous, other.ambiguous)


SCATTERS = {
    "halves": "y(i/2) +=! x(i)",
    "remainders": "y(i%500) +=! x(i)",
    "mirrored": "y(499 - (i+7)%500) max=! x(i)",
    "sums": "y(i+k) max=! x(i)*w(k)",
    "all over": "y(i*77%500) +=! x(i)",
}


@one_in(3)
@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize(("memory", "times"), [("plenty", 1.5), ("least", 4.1)])
def test_instances_of_scatters_are_evaluated_about_once(
    name: str, memory: str, times: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the least memory that it says it needs, four times at most."""
    f = tc.define(f"def f(float(N) x, float(K) w) -> (y) {{ {SCATTERS[name]} }}").f
    arguments = np.arange(1000, dtype=np.float32), np.ones(3, np.float32)
    expected = f.reference(*arguments)
    evaluated: list[int] = []

    def counting(expression: Expression, frame: Frame, mask: BoolArray) -> Bounded:
        evaluated.append(volume(frame.box))
        return expressions.evaluate(expression, frame, mask)

    for module in (windows, need):
        monkeypatch.setattr(module, "MOST_SHARED", 50)
    monkeypatch.setattr(windows, "STEP", 10)
    monkeypatch.setattr(evaluate, "STEP", 10)
    monkeypatch.setattr(evaluate, "evaluate_expression", counting)
    given = need_of(f.specialize(*arguments)).bytes if memory == "least" else None
    np.testing.assert_array_equal(f.oracle(*arguments, memory=given)["y"].values, expected)
    instances = 1000 * (3 if name == "sums" else 1)
    assert sum(evaluated) <= times * instances


LARGE = {
    "product": ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", ((1500, 2), (2, 1400))),
    "overlap": ("def f(float(N) x, float(K) w) -> (y) { y(i+k) +=! x(i) * w(k) }", ((2_000_000,), (2,))),
    "chain": ("def f(float(N) x) -> (c) { a(i) = x(i)*2 b(i) = a(i)+1 a(i) = b(i)*b(i) c +=! a(i) }", ((2_000_000,),)),
    "transposed": ("def f(float(M,N) x) -> (y) { y(j,i) = x(i,j) }", ((1500, 1400),)),
    "scattered": ("def f(float(N) x) -> (y) { y(i*77%1000000) +=! x(i) }", ((1_000_000,),)),
}


@one_in(2)
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("bounds", [True, False])
def test_memory_does_not_exceed_what_is_said(name: str, *, bounds: bool) -> None:
    text, shapes = LARGE[name]
    f = tc.define(text).f
    arguments = [np.ones(shape, np.float32) for shape in shapes]
    need = need_of(f.specialize(*arguments), bounds=bounds).bytes
    with pytest.raises(tc.TooLargeError):
        f.oracle(*arguments, memory=need - 1 if bounds else 0)
    tracemalloc.start()
    try:
        if bounds:
            f.oracle(*arguments, memory=need)
        else:
            f.reference(*arguments)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.2 * need < peak <= need


@pytest.mark.parametrize(
    ("statements", "each"),
    [
        ("y(i) = x(i)", 8),  # values alone
        ("t(i) = x(i) y(i) = t(i)", 17 + 8),  # what is computed with has bounds
        ("t(i) = x(i) u(i) = t(i) v(i) = u(i) y(i) = v(i)", 17 + 17),  # only two at a time
        ("y(i) = x(i) y(i) += x(i)", 17),
        ("t(i) = x(i) y +=! t(i)", 17),
    ],
)
def test_what_a_reference_needs(statements: str, each: int) -> None:
    """Bytes of an element, beside those of steps, which do not grow."""
    f = tc.define(f"def f(float(N) x) -> (y) {{ {statements} }}").f
    small, large = (need_of(f.specialize((size,)), bounds=False).bytes for size in (10**8, 3 * 10**8))
    assert large - small == pytest.approx(each * 2 * 10**8, abs=100)


def test_what_is_too_large_is_refused_before_anything_is_computed() -> None:
    outer = tc.define("def outer(float(M) a, float(N) b) -> (C) { C(m,n) = a(m) * b(n) }").outer
    a = np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (10**6,), (4 * 0,))
    with pytest.raises(
        tc.TooLargeError,
        match=r"^outer: the oracle, which computes what is right, needs 7\.28 TiB of memory for these sizes, and may "
        r"take .* \(a quarter of what there is, unless you say otherwise\); choose smaller sizes, those of "
        r"C \(1000000 x 1000000\) first$",
    ):
        outer.reference(np.ascontiguousarray(a), np.ascontiguousarray(a))
