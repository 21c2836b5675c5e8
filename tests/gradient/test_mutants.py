"""Wrong gradients are noticed: a term dropped, a subscript shifted, a sign, a factor, an adjoint too many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pytest

import tc
from tests.gradient.differences import assert_derivatives

TEXT: Final = """
def f(double(N,M) x, double(K,M) w) -> (y) {
    h(n,k) +=! x(n,m) * w(k,m)
    s(n) +=! exp(h(n,k))
    y(n,k) = exp(h(n,k)) / s(n) + (k > 0 ? h(n,k-1) : 0)
}"""
GRADIENT: Final = str(tc.define(TEXT).gradient())


def _line(text: str, start: str) -> str:
    (found,) = (line for line in text.splitlines() if line.strip().startswith(start))
    return found


def _without(start: str) -> Callable[[str], str]:
    return lambda text: text.replace(_line(text, start) + "\n", "")


def _with(start: str, old: str, new: str) -> Callable[[str], str]:
    def changed(text: str) -> str:
        line = _line(text, start)
        assert old in line
        return text.replace(line, line.replace(old, new, 1))

    return changed


MUTANTS: Final[dict[str, Callable[[str], str]]] = {
    "a term dropped": _without("d_h(n, k - 1) +="),
    "a subscript shifted": _with("d_h(n, k - 1) +=", "d_h(n, k - 1)", "d_h(n, k)"),
    "a sign": _with("d_s(n) +=!", "-(", "("),
    "another adjoint": _with("d_w(k, m) +=!", "x(n, m)", "x(n, M - 1 - m)"),
    "twice": _with("d_x(n, m) +=!", "w(k, m)", "w(k, m) * 2"),
}


def test_the_gradient_itself_agrees() -> None:
    _judge(tc.define(GRADIENT).single())


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_noticed(name: str) -> None:
    mutant = tc.define(MUTANTS[name](GRADIENT)).single()
    assert str(mutant) != GRADIENT
    with pytest.raises(AssertionError):
        _judge(mutant)


def _judge(gradient: tc.Comprehension) -> None:
    rng = np.random.default_rng(0)
    arguments = {"x": rng.standard_normal((3, 4)), "w": rng.standard_normal((5, 4))}
    assert_derivatives(tc.define(TEXT).single(), arguments, instead=gradient)
