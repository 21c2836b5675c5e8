"""Layers of PyTorch that comprehensions compute."""

from __future__ import annotations

import copy
import io
import re
from typing import Any

import pytest
import torch

import tc

LINEAR = """
def linear(float(B,I) x, float(O,I) W, float(O) b) -> (y) {
    y(n,o) = b(o) where n in 0:B
    y(n,o) += x(n,i) * W(o,i)
}"""


def test_a_layer_is_trained() -> None:
    torch.manual_seed(0)
    layer = tc.torch.Module(LINEAR, {"W": (3, 4), "b": torch.zeros(3)})
    inputs, wanted = torch.randn(64, 4), torch.randn(3, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = (layer(inputs) - inputs @ wanted.T).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 1e-3 * losses[0]


def test_it_is_a_module_like_any_other() -> None:
    layer = tc.torch.Module(tc.define(LINEAR), {"W": (3, 4), "b": (3,)})
    assert str(layer) == "Module(linear, W=(3, 4), b=(3,))"
    assert max(float(p.detach().abs().max()) for p in (layer.W, layer.b)) <= 1 / 3**0.5
    stored = io.BytesIO()
    torch.save(layer.state_dict(), stored)
    other = tc.torch.Module(LINEAR, {"W": torch.zeros(3, 4), "b": torch.zeros(3)})
    other.load_state_dict(torch.load(io.BytesIO(stored.getvalue())))
    x = torch.randn(2, 4)
    expected = torch.nn.functional.linear(x, layer.W, layer.b)
    for own in (layer, other, copy.deepcopy(layer), torch.nn.Sequential(layer)):
        torch.testing.assert_close(own(x), expected)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"w": (3, 4)}, "linear has no floating tensor 'w' among its arguments; did you mean 'W'?"),
        (
            {"weight": (3,)},
            "linear has no floating tensor 'weight' among its arguments; its floating tensors are x, W, b",
        ),
        ({"W": (3,)}, "parameter W of linear must have 2 dimensions, got (3,)"),
    ],
)
def test_what_is_no_parameter(parameters: Any, message: str) -> None:
    with pytest.raises(tc.TCError, match=re.escape(message)):
        tc.torch.Module(LINEAR, parameters)


def test_calls_take_the_other_arguments() -> None:
    with pytest.raises(tc.TCError, match="linear takes x, got 2 arguments"):
        tc.torch.Module(LINEAR, {"W": (3, 4), "b": (3,)})(torch.ones(2, 4), torch.ones(2, 4))
