"""Running reductions of ATen, and sorting: types, NaN, ties, gradients."""

from __future__ import annotations

import pytest
import torch

from tests.torch.agreement import agrees, random, refused

INF, NAN = float("inf"), float("nan")


def irregular(*shape: int) -> torch.Tensor:
    """Numbers of which some are NaN or infinite, and some are equal."""
    x, kind = torch.randint(-3, 4, shape).float(), torch.rand(shape)
    x[kind < 0.1], x[(kind > 0.1) & (kind < 0.2)], x[kind > 0.9] = NAN, INF, -INF
    return x


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_sums_and_products(name: str) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        run = getattr(torch, name)
        return [run(x, 0), run(x, -1), run(x, 1, dtype=torch.float64)]

    agrees(function, random(5, 9, learned=True))
    agrees(function, irregular(5, 9))
    agrees(function, random(5, 9, dtype=torch.int32))
    agrees(function, random(5, 9, dtype=torch.bool))
    agrees(function, random(3, 0))
    agrees(lambda x: getattr(torch, name)(x, 0), torch.tensor(2.0))
    agrees(lambda x: getattr(torch, name)(x, 1), random(7, 129), kernels=True)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes_have_the_last_place(name: str) -> None:
    agrees(lambda x: getattr(torch, name)(x, 1), irregular(5, 9))
    agrees(lambda x: getattr(torch, name)(x, 0), random(9, 4, dtype=torch.int64), kernels=True)
    agrees(lambda x: getattr(torch, name)(x, 0), random(9, 4, dtype=torch.bool))
    agrees(lambda x: getattr(torch, name)(x, 0), random(9, 4, learned=True))


def test_logarithms_of_running_sums_of_exponentials() -> None:
    agrees(lambda x: torch.logcumsumexp(x, 1), irregular(5, 9))
    agrees(lambda x: torch.logcumsumexp(x, 0), random(5, 9, learned=True), kernels=True)
    agrees(lambda x: torch.logcumsumexp(x, 0), torch.full((4, 2), -INF))
    agrees(lambda x: torch.logcumsumexp(x, 0), random(0, 2))


@pytest.mark.parametrize("descending", [False, True])
def test_sorting(descending: bool) -> None:
    def function(x: torch.Tensor) -> object:
        return torch.sort(x, dim=0, descending=descending, stable=True)

    agrees(function, irregular(19, 4))
    agrees(function, torch.tensor([0.0, -0.0, 1.0, 0.0]))
    agrees(function, random(9, 4, learned=True), kernels=True)
    for dtype in (torch.int64, torch.uint8, torch.bool, torch.bfloat16):
        agrees(function, random(19, 4, dtype=dtype))
    agrees(function, random(0, 3))
    agrees(function, torch.tensor(2.0))


def test_many_elements_are_sorted_by_digits() -> None:
    agrees(lambda x: torch.sort(x, dim=1, stable=True), irregular(2, 600))


def test_the_first_of_an_order() -> None:
    x = random(5, 40, learned=True)
    agrees(lambda x: [*x.topk(3, 1), *x.topk(3, 0, largest=False), *x.kthvalue(4, 1), *x.kthvalue(2, 0, True)], x)
    agrees(lambda x: [x.topk(9, 1)[0], x.topk(9, 1, False)[0], x.kthvalue(8, 1)[0]], irregular(5, 40))
    agrees(lambda x: x.topk(0, 1), random(5, 4))


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians(name: str) -> None:
    median = getattr(torch, name)
    agrees(lambda x: [median(x, 1)[0], median(x)], irregular(5, 9))
    agrees(lambda x: median(x, 1, True), random(5, 8, learned=True))
    agrees(lambda x: median(x, 0)[0], random(5, 8, dtype=torch.int64))
    agrees(lambda x: median(x, 0)[0], torch.full((3, 2), NAN))
    assert refused(median, random(0)) == {f"aten.{name}.default": "has no elements"}
    assert refused(lambda x: median(x, 1), random(0, 3))[f"aten.{name}.dim"] == "has no elements"
