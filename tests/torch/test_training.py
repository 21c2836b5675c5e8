"""Steps of training: models as they are written, in the ways in which they are trained; against eager PyTorch."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from unittest import mock

import pytest
import torch
from torch import nn

from benchmarks.training.gpt import Gpt
from benchmarks.training.mnist import Net
from benchmarks.training.resnet import ResNet
from benchmarks.training.unet import UNet
from tc.torch.backend import backend
from tc.torch.report import Report
from tests.torch.agreement import Oracle

Batch = tuple[torch.Tensor, ...]


def trains_alike(
    model: nn.Module, batches: Sequence[Batch], *, tolerance: float = 1e-9, halves: bool = False, kernels: bool = False
) -> Report:
    """Asserts that results, gradients that add up over the batches, statistics and an evaluation are eager's.

    ``halves``: under autocast.  ``kernels``: they are compiled; otherwise the oracle runs the graphs.
    """
    torch._dynamo.reset()
    report = Report()
    own = copy.deepcopy(model)
    compiled = torch.compile(own, backend=functools.partial(backend, report=report))
    with nullcontext() if kernels else mock.patch("tc.torch.compiled.Execution", Oracle):
        found = _trained(own, compiled, batches, halves)
    wanted = _trained(model, model, batches, halves)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, rtol=tolerance, atol=tolerance * float(value.abs().max()))
        assert found[name].stride() == value.stride(), name
    assert [part.failures for part in report.parts if part.failures] == []
    return report


def _trained(
    model: nn.Module, called: Callable[..., torch.Tensor], batches: Sequence[Batch], halves: bool
) -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    found = {}
    for number, batch in enumerate(batches):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=halves):
            found[f"result {number}"] = called(*batch)
        found[f"result {number}"].float().square().mean().backward()  # type: ignore[no-untyped-call]
    found |= {name: one.grad for name, one in model.named_parameters() if one.grad is not None}
    found |= dict(model.named_buffers())
    with torch.no_grad():
        found["evaluated"] = called(*batches[-1]) if halves else called(*batches[0])
    return {name: value.detach() for name, value in found.items()}


def images(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(1))


class Small(nn.Module):
    """What networks for images are made of, with a rectification in place."""

    def __init__(self, channels: int = 2) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, 3, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(3)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.relu(self.norm(self.first(x))))
        found: torch.Tensor = self.last(self.last(x.mean((2, 3))).relu_())
        return found


def small(*, dtype: torch.dtype = torch.float64) -> Small:
    torch.manual_seed(2)
    return Small().to(dtype)


def test_gradients_add_up_over_batches_and_a_layer_that_is_called_twice() -> None:
    batches = [(one,) for one in torch.split(images(4, 2, 6, 6), 2)]
    report = trains_alike(small(), batches)
    assert [part.kind for part in report.parts[:2]] == ["forward", "backward"]


def test_the_last_batch_is_smaller() -> None:
    report = trains_alike(small(), [(images(count, 2, 6, 6),) for count in (3, 3, 2)])
    kinds = [part.kind for part in report.parts]
    assert kinds.count("backward") == 2  # the second time, the size of batches is open


@pytest.mark.parametrize("whole", [True, False])
def test_channels_last(whole: bool) -> None:
    model = small().to(memory_format=torch.channels_last if whole else torch.preserve_format)  # type: ignore[call-overload]
    trains_alike(model, [(images(2, 2, 6, 6).to(memory_format=torch.channels_last),)])


def test_frozen_parameters_have_no_gradients() -> None:
    model = small()
    model.first.requires_grad_(False)
    model.norm.requires_grad_(False).eval()
    report = trains_alike(model, [(images(2, 2, 6, 6),)])
    assert model.first.weight.grad is None
    assert all(not part.counts for part in report.parts)


def test_autocast() -> None:
    trains_alike(small(dtype=torch.float32), [(images(2, 2, 6, 6, dtype=torch.float32),)], tolerance=5e-2, halves=True)


def test_layers_that_share_a_parameter() -> None:
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)).double()
    model[2].weight = model[0].weight
    trains_alike(model, [(images(2, 3),)])


LETTERS = torch.arange(10).reshape(2, 5) * 7 % 11
WHOLE: dict[str, Callable[[], tuple[nn.Module, Batch]]] = {
    "digits": lambda: (Net(2), (images(3, 1, 28, 28),)),
    "transformer": lambda: (Gpt(11, 4, 2, 2, 8), (LETTERS[:, :-1], LETTERS[:, 1:])),
    "residual": lambda: (ResNet(4, 2), (images(3, 3, 24, 24),)),
    "unet": lambda: (UNet(3, 2), (images(2, 1, 16, 16),)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_whole_models(name: str) -> None:
    torch.manual_seed(2)
    model, batch = WHOLE[name]()
    trains_alike(model.double(), [batch, batch], kernels=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["residual", "unet"])
def test_whole_models_with_channels_last_and_smaller_batches(name: str) -> None:
    torch.manual_seed(2)
    model, (batch,) = WHOLE[name]()
    last = batch.to(memory_format=torch.channels_last)
    model.double().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    trains_alike(model, [(last,), (last[:-1],), (last,)], kernels=True)
