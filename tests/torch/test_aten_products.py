"""Products of ATen: factors, addends that are broadcast, integers, equations, distances."""

from __future__ import annotations

import pytest
import torch

from tests.torch.agreement import agrees, random, refused

INF, NAN = float("inf"), float("nan")


def test_products_of_matrices_and_vectors() -> None:
    def function(a: torch.Tensor, b: torch.Tensor, v: torch.Tensor) -> list[torch.Tensor]:
        return [a @ b, a @ v, v @ b, v.dot(v), torch.outer(a[0], v), a @ b[:, 0], torch.vdot(v, v)]

    agrees(function, random(3, 5, learned=True), random(5, 4, learned=True), random(5, learned=True))
    agrees(lambda a, b: a @ b, random(7, 33), random(33, 9), kernels=True)


def test_products_of_batches() -> None:
    def function(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        equation = torch.einsum("bij,bjk->bik", a[0], b)
        return [a @ b, torch.bmm(a[0], b), torch.einsum("abij,bjk->aki", a, b), torch.tensordot(a, b[0], 1), equation]

    agrees(function, random(2, 3, 4, 5, learned=True), random(3, 5, 5, learned=True))
    agrees(lambda a, b: torch.einsum("bijl,lk->bijk", a, b), random(2, 3, 4, 5), random(5, 6), kernels=True)


@pytest.mark.parametrize("factors", [(1, 1), (2.5, -1), (0, 3), (1, 0)])
def test_addends_and_factors(factors: tuple[float, float]) -> None:
    beta, alpha = factors

    def function(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, v: torch.Tensor) -> list[torch.Tensor]:
        add = torch.addmm(c, a[0], b[0], beta=beta, alpha=alpha)
        batch = torch.baddbmm(c, a, b, beta=beta, alpha=alpha), torch.addbmm(c, a, b, beta=beta, alpha=alpha)
        return [add, *batch, torch.addmv(c[:, 0], a[0], v, beta=beta, alpha=alpha)]

    for addend in ((3, 4), (1, 4), (3, 1)):
        shapes = (addend, (2, 3, 5), (2, 5, 4), (5,))
        agrees(function, *(random(*shape, learned=True) for shape in shapes))


def test_an_addend_without_a_factor_may_be_nan() -> None:
    c = torch.full((3, 4), NAN)
    agrees(lambda c, a, b: torch.addmm(c, a, b, beta=0), c, random(3, 5), random(5, 4))


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.float64, torch.float16, torch.bfloat16])
def test_types_of_products(dtype: torch.dtype) -> None:
    tolerance = 2e-2 if dtype in (torch.float16, torch.bfloat16) else 1e-5

    def function(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        return [a @ b, torch.addmm(c, a, b, alpha=2, beta=3)]

    operands = (random(4, dtype=dtype), random(3, 5, dtype=dtype), random(5, 4, dtype=dtype))
    agrees(function, *operands, rtol=tolerance, atol=tolerance)


def test_layers() -> None:
    agrees(torch.nn.Linear(5, 3), random(2, 4, 5, learned=True), kernels=True)
    agrees(torch.nn.Linear(5, 3, bias=False), random(5))
    agrees(torch.nn.Bilinear(3, 4, 2), random(5, 3, learned=True), random(5, 4))


def test_what_is_saved_may_be_called_as_a_view_of_another_input_is() -> None:
    a, b, c = (random(*shape, learned=True) for shape in ((3, 4), (4, 5), (5, 2)))
    agrees(lambda a, b, c: torch.linalg.multi_dot([a, b, c]), a, b, c)
    agrees(lambda a, b, c: torch.linalg.multi_dot([a, b, c]), *(one.detach().mT.contiguous().mT for one in (a, b, c)))


def test_empty_products() -> None:
    agrees(lambda a, b: [a @ b, b.mT @ a.mT], random(3, 0), random(0, 4))
    agrees(lambda a, b: a @ b, random(0, 3), random(3, 4))


@pytest.mark.parametrize("order", [0.0, 1.0, 1.5, 2.0, 3.0, INF])
def test_distances(order: float) -> None:
    def function(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        return [torch.cdist(a, b, order), *([torch.dist(a[:, :3], b, order)] if order else [])]

    # The oracle does not round differences, so that none of them is the greatest distance.
    agrees(function, random(2, 4, 5, learned=True), random(3, 5, learned=True), kernels=order == INF)
    agrees(lambda x: torch.pdist(x, order), random(5, 3))


def test_points_at_one_place_have_no_gradient() -> None:
    agrees(lambda a: [torch.cdist(a, a), torch.cdist(a, a, 3.0), torch.cdist(a, a, 1.0)], random(4, 3, learned=True))


def test_sets_without_points() -> None:
    agrees(torch.cdist, torch.empty(0, 3, 5, requires_grad=True), torch.empty(2, 5, requires_grad=True))
    agrees(torch.cdist, torch.empty(3, 5, requires_grad=True), torch.empty(0, 2, 5, requires_grad=True))
    agrees(torch.cdist, torch.empty(3, 0, requires_grad=True), torch.empty(2, 0, requires_grad=True))


def test_what_pytorch_does_not_compute_is_left_to_it() -> None:
    truths, halves = random(3, 3, dtype=torch.bool), random(3, 3, dtype=torch.float16)
    assert refused(torch.mm, truths, truths) == {"aten.mm.default": "multiplies truth values"}
    assert refused(torch.pdist, halves) == {"aten._pdist_forward.default": "computes distances of halves"}
