"""Recurrent networks against PyTorch's, with its weights and in its layouts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch

import tc
from tests.comprehensions.recurrence import CASES
from tests.turns import one_in

_TEXTS = {case.name: case.text for case in CASES}
_RELU = _TEXTS["recurrent_network"].replace("tanh(z(t,b,i))", "max(z(t,b,i), 0)")
_SIZES = [(1, 3, 4, 5), (2, 1, 3, 7), (100, 2, 5, 8)]


def _arrays(module: torch.nn.RNNBase, gates: int) -> tuple[npt.NDArray[np.float32], ...]:
    """The weights and biases of the only layer, gate by gate."""
    found = [parameter.detach().numpy() for parameter in module.parameters()]
    return tuple(p.reshape(gates, -1, *p.shape[1:]) for p in found)


@one_in(3)
@pytest.mark.parametrize("sizes", _SIZES, ids=str)
@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_rnn(nonlinearity: str, sizes: tuple[int, int, int, int]) -> None:
    steps, batch, inputs, hidden = sizes
    torch.manual_seed(1)
    module = torch.nn.RNN(inputs, hidden, nonlinearity=nonlinearity, bias=False)
    w, u = (weights[0] for weights in _arrays(module, 1))
    x, h = torch.randn(steps, batch, inputs), torch.randn(1, batch, hidden)
    rnn = tc.define(_TEXTS["recurrent_network"] if nonlinearity == "tanh" else _RELU).single()
    found = np.asarray(rnn(x.numpy(), np.ascontiguousarray(w.T), u.T, h[0].numpy()))
    with torch.no_grad():
        np.testing.assert_allclose(found[1:], module(x, h)[0].numpy(), rtol=1e-4, atol=1e-5)


@one_in(3)
@pytest.mark.parametrize("sizes", _SIZES, ids=str)
def test_lstm(sizes: tuple[int, int, int, int]) -> None:
    steps, batch, inputs, hidden = sizes
    torch.manual_seed(2)
    module = torch.nn.LSTM(inputs, hidden)
    w, u, v, b = _arrays(module, 4)
    x, h, c = torch.randn(steps, batch, inputs), torch.randn(1, batch, hidden), torch.randn(1, batch, hidden)
    lstm = tc.define(_TEXTS["lstm"]).single()
    found = lstm(x.numpy(), w, u, v + b, h[0].numpy(), c[0].numpy())
    assert isinstance(found, tuple)
    states, last = (np.asarray(result) for result in found)
    with torch.no_grad():
        wanted, (_, cells) = module(x, (h, c))
    np.testing.assert_allclose(states[1:], wanted.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last, cells[0].numpy(), rtol=1e-4, atol=1e-5)


@one_in(3)
@pytest.mark.parametrize("sizes", _SIZES, ids=str)
def test_gru(sizes: tuple[int, int, int, int]) -> None:
    steps, batch, inputs, hidden = sizes
    torch.manual_seed(3)
    module = torch.nn.GRU(inputs, hidden)
    w, u, v, b = _arrays(module, 3)
    x, h = torch.randn(steps, batch, inputs), torch.randn(1, batch, hidden)
    found = np.asarray(tc.define(_TEXTS["gru"]).single()(x.numpy(), w, u, v, b, h[0].numpy()))
    with torch.no_grad():
        np.testing.assert_allclose(found[1:], module(x, h)[0].numpy(), rtol=1e-4, atol=1e-5)


def test_a_bidirectional_network_is_a_block_that_runs_backwards() -> None:
    torch.manual_seed(4)
    module = torch.nn.RNN(3, 4, bidirectional=True, bias=False)
    text = (
        _TEXTS["recurrent_network"]
        + """
    def backwards(float(T,B,I) x, float(I,H) W, float(H,H) U, float(B,H) h0) -> (h) {
        h(T,b,i) = h0(b,i) where i in 0:H
        for t in 0:T {
            z(b,i) +=! x(T-1-t,b,k) * W(k,i)
            z(b,i) += h(T-t,b,j) * U(j,i)
            h(T-1-t,b,i) = tanh(z(b,i))
        }
    }
    def both(float(T,B,I) x, float(I,H) W, float(H,H) U, float(I,H) V, float(H,H) R, float(B,H) h0) -> (y) {
        f = rnn(x, W, U, h0)
        g = backwards(x, V, R, h0)
        y(t,b,i) = f(t+1,b,i) where t in 0:T
        y(t,b,i+H) = g(t,b,i) where t in 0:T
    }
    """
    )
    w, u, v, r = (np.ascontiguousarray(p.detach().numpy().T) for p in module.parameters())
    x = torch.randn(7, 2, 3)
    found = np.asarray(tc.define(text).both(x.numpy(), w, u, v, r, np.zeros((2, 4), np.float32)))
    with torch.no_grad():
        np.testing.assert_allclose(found, module(x)[0].numpy(), rtol=1e-4, atol=1e-5)
