"""Indices of ATen: several ones, negative ones, broadcast ones; writing, adding and reducing at them."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch.nn import functional

from tc.base.errors import ArgumentError
from tc.torch.backend import backend
from tests.torch.agreement import agrees, random, refused

NAN, INF = float("nan"), float("inf")
ROWS, PAIR, ONE = torch.tensor([0, -1, 3]), torch.tensor([[1], [-2]]), torch.tensor(2)
ALL = slice(None)
KEYS: list[Any] = [
    ROWS,
    (ALL, ROWS),
    (ROWS, ROWS),
    (ROWS, ALL, ROWS),
    (ALL, ROWS, PAIR),
    (PAIR, Ellipsis, ROWS),
    ONE,
    (None, ONE, ROWS),
    (ROWS, 2),
    (ROWS, PAIR, ROWS),
]


@pytest.mark.parametrize("key", KEYS)
def test_reading(key: Any) -> None:
    agrees(lambda x: x[key], random(5, 6, 7, learned=True))


def test_indices_of_other_types_and_none_at_all() -> None:
    agrees(lambda x, i: x[i], random(5, 3), ROWS.int())
    agrees(lambda x, i: x[i], random(5, 3, dtype=torch.bool), ROWS)
    agrees(lambda x, i: x[i], random(5, 3, learned=True), ROWS[:0])
    agrees(lambda x, i: [x.index_select(1, i), x[0].take(i)], random(5, 6, learned=True), ROWS.abs())
    agrees(lambda x: x.index_select(0, torch.tensor(0)), torch.tensor(3.0))
    agrees(lambda w, i: functional.embedding(i, w, padding_idx=1), random(9, 4, learned=True), PAIR.abs())


@pytest.mark.parametrize("accumulate", [False, True])
def test_writing(accumulate: bool) -> None:
    x, put = random(5, 6, 7, learned=True), torch.ops.aten.index_put
    for key, shape in (
        ((ROWS,), (3, 6, 7)),
        ((None, ROWS), (1,)),
        ((ROWS, ROWS), (3, 7)),
        ((ROWS, None, ROWS), (3, 6)),
        ((PAIR, ROWS), (7,)),
    ):
        agrees(lambda x, v, key=key: put(x, key, v, accumulate), x, random(*shape, learned=True))
    agrees(lambda x, v: x.put(PAIR, v, accumulate=accumulate), random(5, 3), random(2, 1))
    agrees(lambda x, v: x.index_put((ROWS[:0],), v, accumulate=accumulate), x, random(0, 6, 7))


def test_equal_indices_add_up() -> None:
    i = torch.tensor([1, 1, -1, 1])
    agrees(lambda x, v: x.index_put((i,), v, accumulate=True), random(5, 3), random(4, 3), kernels=True)
    agrees(lambda x, v: x.index_add(0, i.abs(), v, alpha=2), random(5, 3), random(4, 3))
    agrees(lambda x, v: x.index_put((i,), v, accumulate=True), *(random(4, 3, dtype=torch.int64) for _ in range(2)))


def test_slices_that_are_assigned() -> None:
    def function(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[1:4, ::2] = v
        y[:, ROWS] += 1
        y[-1].copy_(v[0, 0])
        return y

    agrees(function, random(5, 6, 7, learned=True), random(3, 3, 7, learned=True))


def test_gathering_and_scattering() -> None:
    x, g = random(5, 6, 7, learned=True), torch.randint(0, 5, (3, 6, 7))
    distinct = torch.rand(5, 6, 7).argsort(0)
    agrees(lambda x: [x.gather(0, g), x.gather(0, g[:2, :3]), x.gather(-1, g)], x, kernels=True)
    agrees(lambda x: [x[0, 0, 0].gather(0, ONE - 2), x.gather(0, g[:0])], x)
    agrees(lambda x, s: [x.scatter(0, distinct[:2], s), x.scatter(0, distinct, 2.5)], x, random(2, 6, 7, learned=True))
    agrees(lambda x, s: x.scatter(0, distinct[:2, 1:], s), x.detach(), random(5, 6, 7))
    agrees(lambda x, s: x.scatter_add(0, g, s), x, random(3, 6, 7, learned=True))


@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("included", [True, False])
def test_reducing(how: str, included: bool) -> None:
    g = torch.randint(0, 5, (3, 6))
    irregular = random(3, 6)
    irregular[0, 0], irregular[1, 2], irregular[2, 4] = NAN, INF, -INF

    def function(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return x.scatter_reduce(0, g, s, how, include_self=included)

    agrees(function, random(5, 6), irregular)
    agrees(function, *(random(count, 6, dtype=torch.int64) for count in (5, 3)))
    if how != "sum":
        agrees(lambda x, s: x.index_reduce(0, ROWS.abs(), s, how, include_self=included), random(5, 6), random(3, 6))


def test_an_index_that_is_out_of_range_raises() -> None:
    for function in (
        lambda x, i: x[i],
        lambda x, i: x.gather(0, i),
        lambda x, i: x.index_put((i,), x[:1]),
        lambda x, i: x.scatter_add(0, i, x[:1]),
        lambda x, i: functional.embedding(i.abs(), x[:, None]),
    ):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=functools.partial(backend), dynamic=False)
        with pytest.raises(ArgumentError, match=r"index 9|out of range|dimension 0"):
            compiled(random(5), torch.tensor([9]))


def test_sums_of_truth_values_are_left() -> None:
    x, v, i = random(5, 3, dtype=torch.bool), random(3, 3, dtype=torch.bool), ROWS.abs()
    found = refused(lambda x, v: torch.ops.aten.index_put(x, [i], v, True), x, v)
    assert found == {"aten.index_put.default": "adds truth values"}
    places = i[:, None].expand(3, 3)
    found = refused(lambda x, v: x.scatter_add(0, places, v), x, v)
    assert found == {"aten.scatter_add.default": "adds or multiplies truth values"}


def test_flags_are_left() -> None:
    x, flags = random(4, 5), torch.ones(5, dtype=torch.bool)
    found = refused(lambda x: torch.ops.aten.index_put(x, [None, flags], x + 1, True), x)
    assert found.get("aten.index_put.default") == "has a result whose shape depends on data"
    assert refused(lambda x, s: x.masked_scatter(x > 0, s[:0]), random(5), random(5)) == {
        "aten.masked_scatter.default": "takes no elements to put in"
    }
