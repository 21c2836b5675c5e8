"""Softmax and normalizations of ATen: statistics, running ones, gradients, halves."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tc.torch.backend import backend
from tests.torch.agreement import agrees, random

F = torch.nn.functional
INF, NAN = float("inf"), float("nan")


def test_softmax() -> None:
    x = random(4, 5, 3)
    x[0], x[1, 2], x[2, 1, 1] = -INF, INF, NAN
    agrees(lambda x: [x.softmax(1), x.log_softmax(-1), x.softmax(0, dtype=torch.float64)], x)
    agrees(lambda x: [x.softmax(-1), x.log_softmax(0)], random(3, 7, learned=True))
    agrees(lambda x: [x.softmax(0), x.log_softmax(0)], torch.tensor(2.5))
    agrees(lambda x: [x.softmax(1), x.log_softmax(0)], random(0, 3))
    agrees(lambda x: x.log_softmax(1), random(5, 33), kernels=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_softmax_of_halves_is_computed_in_float32(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return [x.softmax(1), x.log_softmax(1), F.layer_norm(x, (40,)), x.softmax(1, dtype=torch.float32)]

    agrees(function, random(3, 40, dtype=dtype), rtol=1e-2, atol=1e-2)


def test_layers_and_groups() -> None:
    agrees(torch.nn.LayerNorm((4, 5)), random(3, 4, 5, learned=True))
    agrees(lambda x: F.layer_norm(x, (5,), eps=0.5), random(3, 1, 5, learned=True))
    agrees(lambda x: F.layer_norm(x, (1,)), random(3, 1))
    agrees(torch.nn.GroupNorm(2, 6), random(3, 6, 5, learned=True))
    agrees(torch.nn.GroupNorm(3, 6, affine=False), random(2, 6, 3, 3))
    agrees(torch.nn.RMSNorm(5), random(3, 5, learned=True))
    agrees(torch.nn.InstanceNorm2d(3, affine=True), random(2, 3, 4, 5))
    agrees(torch.nn.LayerNorm(33), random(5, 33), kernels=True)


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 5)])
def test_batches(shape: tuple[int, ...]) -> None:
    norms: list[Any] = [None, None, torch.nn.BatchNorm1d, torch.nn.BatchNorm1d, torch.nn.BatchNorm2d]
    norm = norms[len(shape)]
    for module in (norm(3), norm(3, affine=False, momentum=0.3), norm(3, track_running_stats=False)):
        agrees(module, random(*shape, learned=True))


def test_running_statistics_move_as_pytorchs_do() -> None:
    theirs = torch.nn.BatchNorm1d(3, momentum=0.3)
    ours = torch.nn.BatchNorm1d(3, momentum=0.3)
    compiled = torch.compile(ours, backend=backend)
    for _ in range(3):
        x = random(5, 3, 4) * 3 + 1
        torch.testing.assert_close(compiled(x), theirs(x))
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())


def test_running_statistics_normalize_where_nothing_is_trained() -> None:
    module = torch.nn.BatchNorm2d(3).eval()
    with torch.no_grad():
        module.running_mean += random(3)  # type: ignore[operator]
        module.running_var *= torch.rand(3) + 0.5  # type: ignore[operator]
    agrees(module, random(2, 3, 4, 4, learned=True))
    agrees(torch.nn.BatchNorm1d(3, affine=False).eval(), random(4, 3))
    agrees(lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3), bias=torch.arange(3.0)), random(4, 3))


def test_statistics_that_nothing_uses_are_not_computed() -> None:
    report = agrees(torch.nn.LayerNorm(5), random(3, 5), kernels=True)
    del report
    with torch.no_grad():
        report = agrees(torch.nn.LayerNorm(5), random(3, 5), kernels=True)
    (part,) = report.parts
    (call,) = part.compiled[0].executions[0].plan.graph.nodes
    assert len(call.results) == 1
