"""Reductions of ATen: dimensions, types, empty tensors, NaN and ties as in eager PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.torch.agreement import agrees, random

INF, NAN = float("inf"), float("nan")
INTEGERS = [torch.int32, torch.uint8, torch.bool]


def test_sums_means_and_products() -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        sums = [x.sum(), x.sum(1), x.sum((0, -1), keepdim=True), x.sum(0, dtype=torch.float64)]
        return [*sums, x.mean(), x.mean((0, 2)), x.prod(1), x.prod(-1, keepdim=True), x.prod()]

    agrees(function, random(3, 4, 5, learned=True))
    agrees(lambda x: [x.sum(1), x.mean((0, 2)), x.prod()], random(3, 4, 5), kernels=True)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_summed_as_int64(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return [x.sum(), x.sum(1), x.sum(0, dtype=torch.int32), x.mean(0, dtype=torch.float32), x.prod(0), x.prod()]

    agrees(function, random(3, 7, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_summed_in_float32(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return [x.sum(1), x.mean(), x.var(1), x.sum(0, dtype=torch.float32), x.norm(dim=1), x.amax(0)]

    agrees(function, random(9, 300, dtype=dtype) * 8, rtol=1e-2, atol=1e-2)
    agrees(lambda x: x.mean(), torch.full((4096,), 32.0, dtype=dtype), kernels=True)  # a sum of float16 is infinite


def test_extremes_are_nan_where_an_element_is() -> None:
    x = random(4, 6)
    x[1, 2], x[2, 0], x[3] = NAN, INF, -INF

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return [x.amax(1), x.amin((0, 1)), x.max(), x.min(), *x.aminmax(dim=0)]

    agrees(function, x)
    agrees(lambda x: [x.amax(0), x.amin(1, keepdim=True), x.max()], random(3, 5, learned=True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_extremes_of_halves_are_found_again_in_what_is_computed_twice(dtype: torch.dtype) -> None:
    agrees(lambda x: [(x * x).amax(0), (x * 1.3).amin(1)], random(6, 5, dtype=dtype, learned=True), kernels=True)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_extremes_of_integers_and_truth_values(dtype: torch.dtype) -> None:
    agrees(lambda x: [x.amax(0), x.amin(1), x.max(), x.min(), *x.max(1), *x.min(0)], random(5, 4, dtype=dtype))


@pytest.mark.parametrize("keep", [False, True])
def test_the_first_of_equal_extremes_and_of_nans_has_the_index(keep: bool) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        found: list[Any] = [x.max(1, keepdim=keep), x.min(-2, keepdim=keep)]
        return [
            *(part for one in found for part in one),
            x.argmax(1, keepdim=keep),
            x.argmin(0),
            x.argmax(),
            x.argmin(),
        ]

    ties = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, NAN, 5.0, NAN], [INF, -INF, INF, -INF], [0.0, -0.0, 0.0, -0.0]])
    agrees(function, ties, kernels=not keep)
    agrees(function, torch.zeros(3, 70))
    agrees(lambda x: [*x.max(0), *x.min(0), x.argmax(), x.argmin(0)], torch.tensor(3.0))


def test_gradients_of_extremes_with_indices() -> None:
    agrees(lambda x: [x.max(1)[0], x.min(0)[0]], random(5, 7, learned=True))


def test_any_and_all() -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        found = [x.any(), x.all(), x.any(0), x.all(1, keepdim=True), x.any((0, 1)), x.all((0, 1))]
        return [*found, x.count_nonzero(), x.count_nonzero(1)]

    values = torch.tensor([[0.0, NAN, 0.0], [0.0, 0.0, 0.0], [1.0, -2.0, INF]])
    for x in (values, values.bool(), values.nan_to_num().to(torch.uint8), values.nan_to_num().to(torch.int32)):
        agrees(function, x)


@pytest.mark.parametrize("correction", [0, 2.5, 9])
def test_variances(correction: float) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        found = [x.var(0, correction=correction), x.std((0, 1), correction=correction, keepdim=True)]
        return [*found, *torch.var_mean(x, 1, correction=correction), *torch.std_mean(x, correction=correction)]

    agrees(function, random(4, 5, learned=correction < 4))


def test_variances_do_not_cancel() -> None:
    agrees(lambda x: x.var(1), random(3, 400) + 1e4, rtol=1e-3)


@pytest.mark.parametrize("order", [0, 1, 2, 3, -0.5, INF, -INF])
def test_norms(order: float) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        norm = torch.linalg.vector_norm
        return [norm(x, order), norm(x, order, 1), norm(x, order, (0, 1), keepdim=True, dtype=torch.float64)]

    agrees(function, random(4, 7, learned=True))


def test_logarithms_of_sums() -> None:
    x = random(4, 6)
    x[1], x[2, 3], x[3, 1] = -INF, INF, NAN
    agrees(lambda x: [x.logsumexp(1), x.logsumexp((0, 1)), x.logsumexp(0, keepdim=True)], x)
    agrees(lambda x: [x.nansum(1), x.nanmean(0)], x)


def test_numbers_and_tensors_without_elements() -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return [x.sum(), x.mean(), x.prod(), x.var(), x.any(), x.all(), x.norm()]

    agrees(function, torch.tensor(2.5))
    agrees(function, torch.empty(0, 3))
    agrees(lambda x: [x.sum(0), x.mean(1), x.prod(0), x.sum(1), x.any(0), x.all(0), x.amax(1)], torch.empty(0, 3))
    agrees(lambda x: [x.sum(0), x.mean(0), x.amax(0), x.argmax(0), x.var(0)], torch.tensor(2.5))


def test_inputs_that_do_not_lie_in_order() -> None:
    agrees(
        lambda x: [x.sum(1), x.amax(0), *x.max(2), x.var((0, 2)), x.argmin(1)], random(5, 4, 3).permute(2, 0, 1)[:, ::2]
    )
