"""Pools of ATen and their gradients: windows that leave the image, NaN, ties, places."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from tc.graph.ir.nodes import Call
from tc.language.program.written_elements import is_scatter
from tests.torch.agreement import agrees, random, refused

INF, NAN = float("inf"), float("nan")
WINDOWS = [(3, 2, 1, 1, False), (2, 2, 0, 1, True), (3, 1, 1, 2, False), (4, 3, 2, 1, True)]


def irregular(*shape: int) -> torch.Tensor:
    """Numbers of which some are NaN or infinite, and some are equal."""
    x, kind = torch.randint(-3, 4, shape).float(), torch.rand(shape)
    x[kind < 0.1], x[kind > 0.9] = NAN, -INF
    return x


@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation", "up"), WINDOWS)
def test_max_pools_with_places(kernel: int, stride: int, padding: int, dilation: int, up: bool) -> None:
    def pool(rank: int) -> Callable[[torch.Tensor], object]:
        own = getattr(functional, f"max_pool{rank}d")
        return lambda x: own(x, kernel, stride, padding, dilation, up, return_indices=True)

    agrees(pool(1), irregular(2, 3, 17))
    agrees(pool(2), irregular(2, 2, 9, 11))
    agrees(pool(3), irregular(2, 7, 8, 9))
    agrees(pool(2), torch.full((1, 1, 9, 11), -INF))
    agrees(lambda x: functional.max_pool2d(x, kernel, stride, padding, dilation, up), random(2, 9, 11, learned=True))


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation", "up"),
    [(2, 2, 0, 1, False), (2, 2, 1, 1, False), (2, 3, 0, 1, True), (3, 3, 1, 1, True), (2, 4, 0, 3, False)],
)
def test_gradients_of_windows_that_share_no_element(
    kernel: int, stride: int, padding: int, dilation: int, up: bool
) -> None:
    given = (kernel, stride, padding, dilation, up)
    for pool, shape in (
        (functional.max_pool1d, (2, 3, 17)),
        (functional.max_pool2d, (2, 9, 12)),
        (functional.max_pool3d, (2, 7, 8, 9)),
    ):
        report = agrees(functools.partial(_pooled, pool, given), random(*shape, learned=True))
        executions = [one for part in report.parts for own in part.compiled for one in own.executions]
        calls = [node for one in executions for node in one.plan.graph.nodes if isinstance(node, Call)]
        assert not any(is_scatter(statement) for call in calls for statement in call.program.statements)


def _pooled(pool: Callable[..., torch.Tensor], given: tuple[object, ...], x: torch.Tensor) -> torch.Tensor:
    return pool(x, *given)


@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation", "up"), [own for own in WINDOWS if own[3] == 1])
@pytest.mark.parametrize("counted", [True, False])
def test_average_pools(kernel: int, stride: int, padding: int, dilation: int, up: bool, counted: bool) -> None:
    del dilation
    agrees(lambda x: functional.avg_pool1d(x, kernel, stride, padding, up, counted), random(2, 3, 13, learned=True))
    agrees(lambda x: functional.avg_pool2d(x, kernel, stride, padding, up, counted), random(2, 2, 9, 8, learned=True))
    agrees(lambda x: functional.avg_pool3d(x, kernel, stride, padding, up, counted), random(2, 7, 8, 6, learned=True))
    agrees(lambda x: functional.avg_pool2d(x, kernel, stride, padding, up, counted, 7), random(2, 9, 8, learned=True))


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (7, 2), (6, 3)])
def test_pools_to_a_shape(shape: tuple[int, int]) -> None:
    agrees(lambda x: functional.adaptive_avg_pool2d(x, shape), random(2, 3, 7, 10, learned=True))
    agrees(lambda x: functional.adaptive_max_pool2d(x, shape), random(2, 3, 7, 10, learned=True))
    agrees(lambda x: functional.adaptive_max_pool2d(x, shape, return_indices=True), irregular(2, 3, 7, 10))


def test_layouts_types_and_empty_batches() -> None:
    last = random(2, 3, 9, 9).to(memory_format=torch.channels_last)
    agrees(lambda x: [*functional.max_pool2d(x, 3, 2, return_indices=True), functional.avg_pool2d(x, 3)], last)
    agrees(lambda x: functional.max_pool2d(x, 3, 2, 1), random(2, 3, 9, 9, dtype=torch.int64))
    agrees(lambda x: functional.max_pool2d(x, 3, 2, 1), random(0, 3, 9, 9, learned=True))
    agrees(lambda x: functional.avg_pool2d(x, 3, 2, 1), random(2, 9, 9, dtype=torch.bfloat16), rtol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_halves_are_halves(dtype: torch.dtype) -> None:
    for pool in (
        lambda x: functional.avg_pool2d(x, 3, 2, 1),
        lambda x: functional.avg_pool2d(x, 3, 2, 1, divisor_override=7),
        lambda x: functional.adaptive_avg_pool1d(x.flatten(2), 7),
        lambda x: functional.adaptive_avg_pool2d(x, (4, 7)),
        lambda x: functional.max_pool2d(x, 3, 2, 1),
        lambda x: functional.adaptive_max_pool2d(x, (4, 7)),
    ):
        agrees(pool, random(2, 3, 9, 10, dtype=dtype, learned=True), rtol=1e-2, atol=2e-2)


def test_kernels_of_pools() -> None:
    def pools(x: torch.Tensor) -> list[torch.Tensor]:
        return [functional.max_pool2d(x, 3, 2, 1), functional.avg_pool2d(x, 2), functional.adaptive_avg_pool2d(x, 4)]

    agrees(pools, random(2, 3, 9, 10, learned=True), kernels=True)


def test_axes_without_elements_are_left() -> None:
    found = refused(lambda x: functional.adaptive_avg_pool2d(x, (0, 2)), random(2, 3, 4, 4))
    assert found == {"aten._adaptive_avg_pool2d.default": "pools axes without elements"}
