"""Gradients of blocks that overwrite what was there: sweeps in place, steps inside of steps, parts of a tensor."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tests.gradient.differences import assert_derivatives

# Of `f(double(T,N) x) -> (y)`.
FORMS = {
    "a sweep": "y(i) = x(0,i) for i in 1:N-1 { y(i) = 0.5 * y(i-1) * y(i+1) + x(1,i) }",
    "sweeps": "y(i) = x(0,i) for s in 0:T { for i in 1:N-1 { y(i) = 0.5 * y(i-1) * y(i+1) + x(s,i) } }",
    "a ring": "y(i) = x(0,i) for s in 0:3 { for i in 0:N { y(i) = 0.5 * y((i+N-1)%N) * y((i+1)%N) + x(1,i) } }",
    "old and new": "y(i) = x(0,i) for i in 0:N { y(i) = y(max(i-1,1)) * x(1,i) + sin(y(3)) }",
    "red and black": (
        "s(i) = x(0,i) for t in 0:T { s(2*i) = s(2*i+1) * x(t,i) where i in 0:2 "
        "s(2*i+1) = s(2*i) * s(2*i+1) * x(t,i) where i in 0:2 } y(i) = s(i)"
    ),
    "parts that overlap": (
        "s(i) = x(0,i) for t in 0:T { s(i) = x(t,i) where i in 0:2  s(i+1) = x(t,i) where i in 0:3 } y(i) = s(i)"
    ),
    "a step of another loop": (
        "y(i) = x(0,i) for t in 0:T { s(i) = y(i) for k in 0:3 { s(i) = sin(s(i)) * x(t,i) } y(i) = s(i) + y(i) }"
    ),
    "before and after a loop": (
        "y(i) = x(0,i) for t in 0:T { y(i) = y(i) * 2  for k in 0:3 { y(i) = sin(y(i)) * x(t,i) } y(i) = y(i) * y(i) }"
    ),
    "elimination": (
        "L(i,j) = x(min(i,T-1),j) + (i == j ? 5.0 : 0.0) where i in 0:N, j in 0:N for k in 0:N { for i in k+1:N { "
        "L(i,k) = L(i,k) / L(k,k)  L(i,j) = L(i,j) - L(i,k) * L(k,j) where j in k+1:N } } "
        "y(j) +=! L(i,j) where i in 0:N"
    ),
    "substitution": "for i in 0:N { s +=! x(0,k) * z(k) where k in 0:i  z(i) = x(1,i) - s } y(i) = z(i)",
    "sums into some": "y(i) = x(0,i) for t in 0:T { y(min(i,3)) += x(t,i)  y(1) = x(t,0) }",
    "steps from other steps on": "y(i) = x(0,i) for t in 0:T { for k in t:T { y(i) = sin(y(i)) * x(k,i) } }",
}
MORE_FORMS = {
    "perhaps a step": "y(i) = x(0,i) for t in 0:min(T,1) { y(i) = y(i) * x(t,i) }",
    "all anew": "y(i) = x(0,i) for i in 0:N { y(i) = sin(x(1,i)) }",
    "what was written ahead": "y(0,i) = x(0,i) y(1,i) = x(1,i) y(2,i) = x(1,i) for t in 1:T { y(t,i) = y(t-1,i) * 2 }",
    "a shift": "y(i) = x(0,i) for s in 0:2 { for i in 1:N { y(i) = y(i-1) * x(1,i) } }",
    "only a loop": "y(i) = x(0,i) for t in 0:T { for k in 0:3 { y(i) = sin(y(i)) * x(t,i) } }",
    "two loops": (
        "y(i) = x(0,i) for t in 0:T { for k in 0:2 { y(i) = sin(y(i)) * x(t,i) } "
        "for l in 0:2 { y(i) = cos(y(i)) * x(t,i) } z(t,i) = y(i) } w(i) +=! z(t,i)"
    ),
    "a grid": (
        "h(t,i) = x(0,0) where t in 0:T+1, i in 0:N+1, t < 1 || i < 1 "
        "for t in 0:T { for i in 0:N { h(t+1,i+1) = sin(h(t,i+1) * h(t+1,i)) + x(t,i) } } "
        "y(i) = h(T,i+1) where i in 0:N"
    ),
    "sums": "y(i) = x(0,i) for t in 0:T { for k in 0:N { y(i) += x(t,k) * x(t,i) } }",
    "steps up to other steps": "y(i) = x(0,i) for t in 0:T { for k in 1:t { y(i) = sin(y(i)) * x(k,i) } }",
    "three loops": (
        "y(i) = x(0,i) for a in 0:2 { for b in 0:2 { for i in 1:N-1 "
        "{ y(i) = 0.5 * y(i-1) * y(i+1) + x(a,i) * x(b,i) } } }"
    ),
    "the greatest": "y(i) = x(0,i) for a in 0:2 { for b in 0:T { y(i) max= x(b,i) * x(a,i) } y(i) *= x(a,i) }",
    "nothing before": (
        "for t in 0:T { for k in 0:N { s = x(t,k) * x(t,0)  r(k) = s * s } z(t,i) = r(i) } y(i) +=! z(t,i)"
    ),
    "a fixed point": (
        "h(t,i) = x(0,i) where t in 0:T+1 "
        "for t in 0:T { for k in 0:2 { h(t+1,i) = sin(h(t+1,i) * h(t,i)) + x(t,i) } } y(i) = h(T,i)"
    ),
    "shortest paths": (
        "D(i,j) = x(min(i,T-1),j) where i in 0:N, j in 0:N for k in 0:N { D(i,j) min= D(i,k) + D(k,j) } "
        "y(j) +=! D(i,j) where i in 0:N"
    ),
    "where data choose": "y(i) = x(0,i) for t in 0:T { y(i) = y(min(int64(x(0,i) * 2), N-1)) * x(t,i) }",
}


def _check(form: str) -> None:
    f = tc.define(f"def f(double(T,N) x) -> (y) {{ {form} }}").single()
    assert_derivatives(f, {"x": np.random.default_rng(3).uniform(0.5, 1.5, (4, 5))})
    for derivative in (f.gradient(), f.jvp()):
        assert tc.define(str(derivative)).single().program == derivative.program


@pytest.mark.parametrize("name", FORMS)
def test_what_is_overwritten_has_the_adjoint_of_what_it_was(name: str) -> None:
    _check(FORMS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE_FORMS)
def test_more_of_what_is_overwritten(name: str) -> None:
    _check(MORE_FORMS[name])


def test_a_sweep_reads_what_was_there_or_what_it_has_given() -> None:
    f = tc.define(f"def f(double(T,N) x) -> (y) {{ {FORMS['a sweep']} }}").single()
    text = str(f.gradient())
    assert "y(i) = 0.5 * y(i - 1) * y_before(i + 1) + x(1, i)" in text
    assert "y(i0) = y_before(i0) where i0 in 0:N, " in text


def test_sums_over_steps_keep_their_tensor() -> None:
    f = tc.define("def f(double(T,N) x) -> (y) { y(i) = x(0,i) for t in 0:T { y(i) += x(t,k) * x(t,i) } }").single()
    assert "steps" not in str(f.gradient())


def test_what_steps_would_take_over_must_have_a_value() -> None:
    f = tc.define(
        "def f(double(T,N) x) -> (y) { h(0,i) = x(0,i) for t in 0:T { h(t+1,i) = h(t,i) "
        "for k in 0:2 { h(t+1,i) = sin(h(t+1,i)) * x(t,i) } } y(i) = h(T,i) }"
    ).single()
    with pytest.raises(
        tc.GradientError, match="steps replace elements of `h`, and some have no value before the block"
    ):
        f.gradient()


def test_a_scalar_may_say_which_value_a_read_finds() -> None:
    f = tc.define(
        "def f(double(N) x, int32 k) -> (y) { y(i) = x(i) "
        "for i in 0:N { y(i) = sin(x(i)) * y(i < k ? max(i-1,0) : min(i+1,N-1)) } }"
    ).single()
    assert_derivatives(f, {"x": np.random.default_rng(0).uniform(0.5, 1.5, 6), "k": np.int32(3)})


def test_statements_of_other_tensors_are_not_asked_about_theirs() -> None:
    # The remainder by a size is not affine.
    ahead = "s +=! x(0,k) where k in 0:N, k % N < 3  h(0,i) = x(0,i)"
    steps = "for t in 0:T { h(t+1,i) = h(t,i) * x(t,i) }  y(i) = h(T,i) * s"
    f = tc.define(f"def f(double(T,N) x) -> (y) {{ {ahead}  {steps} }}").single()
    assert "steps" not in str(f.gradient())
