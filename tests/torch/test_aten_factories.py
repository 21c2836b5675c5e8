"""Tensors that are made from numbers, and random ones, which stay PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from tc.torch.backend import backend
from tests.torch.agreement import agrees, random, refused

TYPES = [torch.float32, torch.bfloat16, torch.float64, torch.int32, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", TYPES)
def test_filled(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        made = [torch.zeros(3, 4, dtype=dtype), torch.ones(2, dtype=dtype), torch.full((), 1, dtype=dtype)]
        return [*made, torch.full((2, 3), 1, dtype=dtype), torch.zeros_like(x, dtype=dtype), x.new_full((3,), 1)]

    agrees(function, random(2, 3))


def test_ranges() -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        made = [torch.arange(7), torch.arange(3, 20, 4), torch.arange(0.0, 1.0, 0.1), torch.arange(5, -3, -2)]
        made += [torch.arange(3, dtype=torch.bfloat16), torch.arange(0), torch.arange(1, 10, 2.5)]
        made += [torch.arange(0.5, 9, 2.5, dtype=torch.int64), torch.arange(5, 5)]
        return [*made, torch.linspace(0, 1, 7), torch.eye(3, 4), torch.scalar_tensor(2) + x]

    agrees(function, random(1))


def test_long_ranges_are_computed() -> None:
    agrees(lambda x: [torch.arange(100000) * 2, torch.arange(70000.0) / 3 + x], random(1), kernels=True)


def test_memory_that_is_not_written_is_zero() -> None:
    compiled = torch.compile(lambda x: torch.empty_like(x) * 0 + x, backend=backend, dynamic=False)
    x = random(3, 4)
    assert torch.equal(compiled(x), x)


def test_the_shape_of_random_numbers_is_left() -> None:
    found = refused(lambda x: functional.dropout(x, 0.5), random(3))
    assert found["aten.empty_permuted.default"] == "has the shape of random numbers"


RANDOM: list[tuple[Callable[[torch.Tensor], torch.Tensor], set[str]]] = [
    (lambda x: functional.dropout(x, 0.15, True), {"aten.bernoulli.p", "aten.empty_permuted.default"}),
    (
        lambda x: functional.dropout(functional.dropout(x, 0.3), 0.3),
        {"aten.bernoulli.p", "aten.empty_permuted.default"},
    ),
    (lambda x: functional.dropout2d(x[None, ..., None], 0.3), {"aten.bernoulli.p", "aten.empty.memory_format"}),
    (lambda x: functional.dropout(x, 1.0), set()),
    (lambda x: torch.rand_like(x) + x, {"aten.rand_like.default"}),
]


CASES = [*((*case, torch.float32) for case in RANDOM), (*RANDOM[0], torch.bfloat16)]


@pytest.mark.parametrize(("function", "left", "dtype"), CASES)
def test_random_numbers_are_those_of_eager(
    function: Callable[[torch.Tensor], torch.Tensor], left: set[str], dtype: torch.dtype
) -> None:
    def seeded(x: torch.Tensor) -> torch.Tensor:
        return function(x)

    x = random(7, 129, dtype=dtype, learned=True)
    torch.manual_seed(3)
    wanted = function(x)
    state = torch.get_rng_state()
    (slope,) = torch.autograd.grad(wanted.sum(), x)
    torch._dynamo.reset()
    compiled = torch.compile(seeded, backend=backend, dynamic=False)
    compiled(x)
    torch.manual_seed(3)
    found = compiled(x)
    assert torch.equal(found, wanted)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(torch.autograd.grad(found.sum(), x)[0], slope)
    assert set(refused(function, x)) <= {*left, "<built-in function getitem>"}


def test_masks_are_drawn_in_the_order_of_the_program_and_of_memory() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        across = functional.dropout((x @ x.t()).relu()[:5].t(), 0.3)  # is transposed
        noise = torch.bernoulli(across.abs().clamp(0, 1))  # depends on what was drawn before
        return functional.dropout(across + noise, 0.4) * torch.rand(7, 5) + functional.dropout(noise, 0.5)

    x = random(7, 4, learned=True)
    torch.manual_seed(3)
    wanted = function(x)
    state = torch.get_rng_state()
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend, dynamic=False)
    torch.manual_seed(3)
    found = compiled(x)
    assert torch.equal(torch.get_rng_state(), state)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(torch.autograd.grad(found.sum(), x), torch.autograd.grad(wanted.sum(), x))
