"""Gradients of compiled modules beside differences of their results, in float64, as PyTorch checks its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn import functional

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _normalized(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return functional.gelu(functional.layer_norm(x, x.shape[-1:], w, b)) * torch.logsumexp(x, 1, keepdim=True)


def _convolved(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return functional.avg_pool2d(functional.conv2d(x, w, b, stride=2, padding=1).tanh(), 2)


def _attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / 2, -1) @ v


def _gathered(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    places = torch.tensor([2, 0, 2, 1])
    return x[places].cumsum(0), x.index_add(0, places, y).prod(1)


def _changed(x: Tensor, y: Tensor) -> Tensor:
    z = x * 2
    z[1:] *= y[:-1]
    z.t()[0].add_(y[:, 1])
    return z.masked_fill(x > 0, 0.5).sort(1)[0]


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (_normalized, [(2, 3), (3,), (3,)]),
        (_convolved, [(1, 2, 5, 5), (2, 2, 3, 3), (2,)]),
        (_attended, [(2, 3), (4, 3), (4, 2)]),
        (_gathered, [(3, 2), (4, 2)]),
        (_changed, [(3, 2), (3, 2)]),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)
def test_gradients_are_limits_of_differences(function: Callable[..., Tensor], shapes: list[tuple[int, ...]]) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(torch.compile(function, backend="tc", dynamic=False), inputs)
