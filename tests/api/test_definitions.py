"""A text that is defined again means the same, and is not parsed again."""

from __future__ import annotations

import pytest

import tc

TWICE = "def twice(float(N) X) -> (Y) { Y(i) = 2 * X(i) }"


def test_a_text_is_understood_once() -> None:
    first, second = tc.define(TWICE), tc.define(TWICE)
    assert first.twice is not second.twice
    assert first.twice.program is second.twice.program
    assert tc.define(TWICE.replace("2", "3")).twice.program != first.twice.program


def test_what_a_text_does_not_mean_is_said_every_time() -> None:
    text = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) <=> gemm(A, B) }"
    for _ in range(2):
        with pytest.warns(tc.LibraryCallWarning, match="the library call `gemm` is ignored"):
            tc.define(text)
        with pytest.raises(tc.SemanticError, match="`y`"):
            tc.define("def f(float(N) X) -> (Y) { Y(i) = y(i) }")
