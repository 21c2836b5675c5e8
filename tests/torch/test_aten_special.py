"""Rounding, floored quotients, special functions, searches: numbers of all kinds, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.torch.agreement import agrees, random, refused, sharing, tensors

INF, NAN = float("inf"), float("nan")
ODD = torch.tensor([0.0, -0.0, 0.5, 1.5, -2.5, 3.0, -7.25, 1e30, INF, -INF, NAN, 2.0, -1.0])


def test_rounding() -> None:
    agrees(lambda x: (x.round(), (x * 10).round(decimals=1), (x * 1234).round(decimals=-2)), ODD, kernels=True)
    agrees(lambda x: x.round(), random(7, dtype=torch.int32))
    assert refused(lambda x: x.round(decimals=-1), random(7, dtype=torch.int32)) == {
        "aten.round.decimals": "rounds integers to tens"
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_mish_takes_one_exponential(dtype: torch.dtype) -> None:
    x = torch.cat([ODD, torch.linspace(-120, 40, 333)]).to(dtype)
    agrees(torch.nn.functional.mish, x, kernels=True, rtol=1e-2 if dtype is torch.bfloat16 else 2e-6, atol=1e-37)
    agrees(torch.nn.functional.mish, torch.linspace(-9, 9, 33).to(torch.float64).requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32])
def test_quotients_that_are_rounded_down(dtype: torch.dtype) -> None:
    x, y = (torch.arange(-12, 13) / 4).to(dtype), torch.tensor([[-2.0], [3.0], [0.5], [-0.75]]).mul(4).to(dtype)
    agrees(
        lambda x, y: (x // y, torch.div(x, y, rounding_mode="floor"), x // 3, torch.div(x, y, rounding_mode="trunc")),
        x,
        y,
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_quotients_by_numbers_of_both_signs(dtype: torch.dtype) -> None:
    x = torch.arange(-12, 13).abs().to(dtype) if dtype is torch.uint8 else torch.arange(-12, 13).to(dtype)
    for number in (1, 3, 200) if dtype is torch.uint8 else (1, 3, 7, -1, -3):
        agrees(lambda x, n=number: (x // n, x % n, torch.div(x, n, rounding_mode="floor"), torch.remainder(x, n)), x)


def test_quotients_by_numbers_that_wrap() -> None:
    x = torch.arange(-12, 13)
    agrees(lambda x: (x // 200, x % 200), x.to(torch.int8))
    agrees(lambda x: (x // 40000, x % 40000), x.to(torch.int16))


def test_quotients_of_zeros_and_infinities() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = torch.div(x, y, rounding_mode="floor")
        return found, found.signbit()

    agrees(function, ODD, ODD[:, None], kernels=True)


def test_signs_and_neighbours() -> None:
    agrees(lambda x: (x.signbit(), torch.nextafter(x, x.flip(0)), x.ldexp(torch.tensor([3])), x.angle()), ODD)
    agrees(lambda x: (x.signbit(), x.angle()), random(5, dtype=torch.int64))


@pytest.mark.parametrize(
    "function",
    [
        torch.digamma,
        torch.special.i0,
        torch.special.i0e,
        torch.special.i1,
        torch.special.i1e,
        torch.special.erfcx,
        torch.special.log_ndtr,
    ],
)
def test_special_functions(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.cat([torch.linspace(-9.3, 12, 40), torch.tensor([0.0, -0.0, -3.0])])
    for dtype, rtol in ((torch.float64, 1e-12), (torch.float32, 5e-6)):
        agrees(function, x.to(dtype), rtol=rtol, atol=rtol)
    agrees(function, torch.tensor([30.0, 80.0, 600.0, 2000.0]), rtol=1e-5)
    agrees(function, random(4, dtype=torch.int32), rtol=1e-5)


def test_bessel_functions_and_quantiles() -> None:
    agrees(lambda x: (torch.special.bessel_j0(x), torch.special.bessel_j1(x)), torch.linspace(-9, 9, 20), rtol=1e-5)
    x = torch.linspace(0.01, 0.99, 9, dtype=torch.float64)
    agrees(lambda x: (torch.special.ndtri(x), torch.special.bessel_y0(x), torch.special.bessel_y1(x)), x, rtol=1e-12)


@pytest.mark.parametrize("right", [False, True])
def test_searches(right: bool) -> None:
    ordered, rows = torch.tensor([1.0, 2, 2, 5]), torch.tensor([[1.0, 2, 2, 5], [0, 0, 3, 4]])
    x = torch.tensor([[2.0, 0, NAN], [5, 9, 3]])

    def function(ordered: torch.Tensor, rows: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        whole = torch.searchsorted(rows, x, right=right)
        return whole, torch.bucketize(x, ordered, right=right, out_int32=True), torch.bucketize(2, ordered, right=right)

    agrees(function, ordered, rows, x, kernels=right)
    agrees(lambda x: torch.bucketize(x, torch.zeros(0), right=right), x)
    assert refused(lambda x: torch.bucketize(x, torch.arange(600.0)), x) == {
        "aten.bucketize.Tensor": "searches more than 512 elements"
    }
    assert refused(lambda x: torch.searchsorted(x, x, sorter=x.argsort()), x[1]) == {
        "aten.searchsorted.Tensor": "takes an order beside what is sorted"
    }


def test_flagged_elements_are_replaced() -> None:
    x, flags = random(4, 3), torch.tensor([True, False, True, True])

    def function(x: torch.Tensor, flags: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a, b, c, d = (x.clone() for _ in range(4))
        a[x > 0], b[flags], c[flags] = 0.5, 2, x[0]
        d.index_put_((flags,), x[:1], accumulate=True)
        return a, b, c, d, torch.masked_scatter(x[0], x > 0, x.exp())

    agrees(function, x, flags, kernels=True)
    agrees(lambda x, flags, v: x.index_put((flags,), v), torch.arange(4.0), flags, torch.tensor([7.0, 8, 9]))
    assert refused(lambda x, flags: x.index_put((flags,), x[:3]), x, flags) == {
        "aten.index_put.default": "puts in as many elements as are flagged"
    }


def test_named_reductions_of_scatters_and_joins_of_types() -> None:
    x, index = random(3, 4), torch.tensor([[0, 2, 1, 2]])
    agrees(lambda x, i: (x.scatter(0, i, x, reduce="multiply"), x.scatter(0, i, 2, reduce="add")), x, index)
    agrees(lambda x, y: torch.cat([x, y, x > 0]), x, random(1, 4, dtype=torch.int32))
    agrees(lambda x: torch.cat([x, x]), torch.zeros(0))


def test_results_have_gaps_and_shared_elements_as_pytorchs_do() -> None:
    x = random(4, 6)
    agrees(lambda x: ((x + 1)[:, ::2], (x + 2).t()[1:, :2]), x, kernels=True)
    agrees(lambda x: ((x + 1)[:, None].expand(4, 3, 6), (x + 2).unfold(1, 3, 2), (x + 1)[:0, ::2]), x, kernels=True)


def test_results_share_memory_where_pytorchs_do() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, z = x + 1, x * 2
        return *torch.split(x, 2), *z.unbind(1), y, y.clone(), y.detach(), x + 1, x.clone()

    for x in (random(4, 3), random(4, 3, learned=True)):
        agrees(function, x)
        found, wanted = (call(x) for call in (torch.compile(function, backend="tc"), function))
        assert sharing([x, *tensors(found)]) == sharing([x, *tensors(wanted)])
        torch._dynamo.reset()


def test_views_alone_need_no_kernel() -> None:
    report = agrees(lambda x: (x.chunk(2), x.t()), random(4, 3))
    assert [len(part.compiled) for part in report.parts] == [0]
