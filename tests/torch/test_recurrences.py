"""Recurrent layers, captured as a whole: cells, layers, directions, gradients; comprehensions as operators."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import tc
from tests.torch.agreement import agrees, random, refused

LAYERS = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "plain": torch.nn.RNN}


@pytest.fixture(autouse=True)
def _captured() -> Iterator[None]:
    """PyTorch captures recurrent layers only where it is told to."""
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_and_directions(kind: str) -> None:
    layer = LAYERS[kind](3, 4, num_layers=2, bidirectional=True, batch_first=True)
    report = agrees(layer, random(2, 5, 3, learned=True))
    names = [str(node.target) for part in report.parts for one in part.compiled for node in one.module.graph.nodes]
    assert sum(name.startswith("tc.") for name in names) == 8  # cells, forward and backward


@pytest.mark.parametrize("kind", LAYERS)
def test_first_states_and_missing_biases(kind: str) -> None:
    layer = LAYERS[kind](3, 4, bias=False, dtype=torch.float64)
    first: Any = random(1, 2, 4, dtype=torch.float64, learned=True)
    x = random(5, 2, 3, dtype=torch.float64)
    agrees(layer, x, (first, random(1, 2, 4, dtype=torch.float64)) if kind == "lstm" else first)


@pytest.mark.parametrize("kind", LAYERS)
def test_kernels(kind: str) -> None:
    layer = LAYERS[kind](5, 7)
    agrees(layer, random(9, 3, 5), kernels=True)
    with torch.no_grad():
        agrees(layer, random(9, 3, 5), kernels=True)


def test_other_functions_of_the_state() -> None:
    agrees(torch.nn.RNN(3, 4, nonlinearity="relu"), random(5, 3))
    agrees(torch.nn.LSTMCell(3, 4), random(2, 3, learned=True))
    agrees(torch.nn.GRUCell(3, 4), random(2, 3, learned=True))


def test_a_projection_is_decomposed_by_pytorch() -> None:
    with torch.no_grad():
        agrees(torch.nn.LSTM(3, 4, proj_size=2), random(3, 2, 3))


def test_comprehensions_join_the_graph() -> None:
    text = "def rows(float(N,D) x, float(D) w) -> (y) { s(n) +=! x(n,d) * w(d)  y(n,d) = exp(x(n,d)) * s(n) }"
    operator = tc.define(text).torch_op(f"tests::rows_{uuid.uuid4().hex}")
    agrees(lambda x, w: operator(x * 2, w).tanh(), random(3, 4, learned=True), random(4, learned=True))
    with torch.no_grad():
        report = agrees(lambda x, w: operator(x * 2, w).tanh(), random(3, 4), random(4), kernels=True)
    (part,) = report.parts
    (execution,) = part.compiled[0].executions
    assert len(execution.kernels) <= 2


def test_comprehensions_with_numbers_are_called_apart() -> None:
    name = f"scale_{uuid.uuid4().hex}"
    operator = tc.define("def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }").torch_op(f"tests::{name}")
    assert refused(lambda x: operator(x, 2.0) + 1, random(3)) == {
        f"tests.{name}.default": "takes numbers beside tensors"
    }


def test_a_graph_differentiates_itself() -> None:
    layer, x = torch.nn.GRU(2, 3), random(3, 2, 2)

    def slope(x: torch.Tensor) -> Any:
        return torch.func.grad(lambda own: layer(own)[0].sin().sum())(x)

    def forward(x: torch.Tensor) -> Any:
        return torch.func.jvp(lambda own: layer(own)[0], (x,), (x,))[1]

    with torch.no_grad():
        agrees(slope, x)
        agrees(forward, x)
