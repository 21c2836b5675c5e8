"""Gradients of blocks of steps, and of gradients themselves, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import tc
from benchmarks.problems.recurrent import LSTM
from tests.gradient.differences import as_array, as_tuple, assert_derivatives, widened
from tests.turns import one_in

STEPS = {
    "overwritten": "s(i) = x(0,i) for t in 0:T { s(i) = tanh(s(i)) * x(t,i) } y(i) = s(i)",
    "in parts": "for t in 0:T { s(i) = x(t,i) * 2 s(i) = sin(s(i)) y(t,i) = s(i) * s(i) }",
    "going on": "s(i) = 0 where i in 0:N for t in 0:T { s(i) += x(t,i) * x(t,k) } y(i) = s(i)",
    "greatest so far": "s(i) = x(0,i) for t in 0:T { s(i) max= x(t,i) } y(i) = s(i)",
    "product so far": "s(i) = x(0,i) for t in 0:T { s(i) *= x(t,i) y(t,i) = s(i) }",
    "a part": "s(i) = x(0,i) for t in 0:T { s(i) = s(i) * x(t,i) where i in 1:N-1 } y(i) = s(i)",
    "backwards": "y(T,i) = x(0,i) for t in 0:T { y(T-1-t,i) = y(T-t,i) * x(T-1-t,i) }",
    "two blocks": "s(i) = x(0,i) for t in 0:T { s(i) = s(i) * x(t,i) } for u in 0:3 { s(i) = sin(s(i)) } y(i) = s(i)",
    "a later start": "y(0,i) = x(0,i) for t in 1:T { y(t,i) = y(t-1,i) * x(t,i) + x(t-1,i) }",
}


@one_in(2)
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("steps", [1, 4])
def test_steps_agree_with_differences(name: str, steps: int) -> None:
    f = tc.define(f"def f(double(T,N) x) -> (y) {{ {STEPS[name]} }}").single()
    x = np.random.default_rng(3).uniform(0.5, 1.5, (steps, 5))
    assert_derivatives(f, {"x": x})


def test_lstm() -> None:
    f = tc.define(widened(LSTM)).single()
    rng = np.random.default_rng(0)
    steps, batch, size = 5, 3, 4
    x = rng.standard_normal((steps, batch, size))
    w, u = rng.standard_normal((2, 4, size, size))
    bias = rng.standard_normal((4, size))
    h, c = rng.standard_normal((2, batch, size))
    layer = torch.nn.LSTM(size, size).double()
    parameters = dict(layer.named_parameters())
    with torch.no_grad():
        for own, given in (("weight_ih_l0", w), ("weight_hh_l0", u), ("bias_ih_l0", bias)):
            parameters[own].copy_(torch.from_numpy(given).reshape(parameters[own].shape))
        parameters["bias_hh_l0"].zero_()
    given = [torch.from_numpy(own).requires_grad_() for own in (x, h[None], c[None])]
    values, (_, last) = layer(given[0], (given[1], given[2]))
    d, e = rng.standard_normal(values.shape), rng.standard_normal(last.shape)
    total = (values * torch.from_numpy(d)).sum() + (last * torch.from_numpy(e)).sum()
    wanted = torch.autograd.grad(
        total, [given[0], parameters["weight_ih_l0"], parameters["weight_hh_l0"], parameters["bias_ih_l0"], *given[1:]]
    )
    found = f.gradient()(x, w, u, bias, h, c, np.concatenate([np.zeros((1, batch, size)), d]), e[0])
    for part, other in zip(as_tuple(found), wanted, strict=True):
        np.testing.assert_allclose(part, other.numpy().reshape(part.shape), rtol=1e-9, atol=1e-10)


def _softplus(x: torch.Tensor) -> torch.Tensor:
    return torch.log1p(torch.exp(x))


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("y(i) = x(i) * x(i) * x(i)", lambda x: x**3),
        ("y(i) = exp(sin(x(i)))", lambda x: torch.exp(torch.sin(x))),
        ("y(i) = log1p(exp(x(i)))", _softplus),
        ("s +=! exp(x(k))  y(i) = exp(x(i)) / s", lambda x: torch.softmax(x, 0)),
        ("y(i) +=! x(i) * x(k)", lambda x: x * x.sum()),
        ("y(i) *=! x(k) where i in 0:N", lambda x: x.prod().expand(x.shape)),
    ],
)
def test_second_derivatives(statement: str, value: Callable[[torch.Tensor], torch.Tensor]) -> None:
    f = tc.define(f"def f(double(N) x) -> (y) {{ {statement} }}").single()
    rng = np.random.default_rng(0)
    x, d, e = rng.uniform(0.5, 1.5, (3, 5))
    t, weight = torch.from_numpy(x).requires_grad_(), torch.from_numpy(d).requires_grad_()
    (first,) = torch.autograd.grad(value(t), t, weight, create_graph=True)
    wanted = torch.autograd.grad(first, (t, weight), torch.from_numpy(e))
    np.testing.assert_allclose(as_array(f.gradient()(x, d)), first.detach().numpy(), rtol=1e-10)
    for own, other in zip(as_tuple(f.gradient().gradient("x", "d_y")(x, d, e)), wanted, strict=True):
        np.testing.assert_allclose(own, other.numpy(), rtol=1e-9, atol=1e-12)


def test_the_same_bits_with_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    f = tc.define(
        """
        def f(float(E,D) T, int32(B) I, float(O,D) W) -> (y) {
            h(b,o) +=! T(I(b),d) * W(o,d)
            m(b) max=! h(b,o)
            y(b,o) = exp(h(b,o) - m(b))
        }"""
    ).single()
    table, weights = rng.standard_normal((50, 64), np.float32), rng.standard_normal((40, 64), np.float32)
    index = rng.integers(0, 50, 700).astype(np.int32)
    d = rng.standard_normal((700, 40), np.float32)
    gradient = f.gradient()
    before = tc.get_threads()
    try:
        found = []
        for threads in (1, 2, 4):
            tc.set_threads(threads)
            found.append([own.tobytes() for own in as_tuple(gradient(table, index, weights, d))])
    finally:
        tc.set_threads(before)
    assert found[0] == found[1] == found[2]


def test_what_only_a_dead_branch_reads_has_no_derivative() -> None:
    """`acc` before the inner block is read where `n < -5`: its adjoint's adjoint is added to, and never begun."""
    text = """
    def f(double(N) A) -> (acc) {
        acc(i) = A(i)
        for n in 0:3 {
            acc(i) = tanh(acc(max(i - 1, 0))) where i in 0:N
            for i in 0:N { acc(i) = tanh(n >= -5 ? max(-1, A(i)) : acc(i) * acc(i)) }
            acc(i) = tanh(acc(min(i + 1, N - 1))) where i in 0:N
        }
    }"""
    with pytest.raises(tc.GradientError, match=r"`acc_part_1\(0, 0\)` is read at n = 0 before it is written"):
        tc.define(text).single().jvp()
