"""Operators of ATen that move elements by affine rules."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.torch.agreement import agrees, random, refused


def test_reversed_rolled_and_repeated() -> None:
    x = random(4, 5, 6, learned=True)
    agrees(lambda x: [x.flip(0, 2), x.roll((2, -9), (0, 2)), x.roll(3), x.repeat(2, 1, 3, 1), x.rot90()], x)
    agrees(lambda x: [x.flip(1), x.roll(-1, 0), x.repeat(1, 2)], random(3, 4), kernels=True)
    agrees(lambda x: [x.roll(3, 0), x.flip(0), x.repeat(0, 2)], random(0, 3))
    agrees(lambda x: [x.roll(1), x.flip([]), x.flip(0), x.flip(-1)], torch.tensor(2.0))


@pytest.mark.parametrize("place", [-9, -2, 0, 1, 9])
def test_triangles_and_diagonals(place: int) -> None:
    irregular = random(2, 5, 7)
    irregular[0, 1, 2] = float("nan")
    agrees(lambda x: [x.tril(place), x.triu(place)], irregular)
    agrees(lambda x: torch.diagonal(x, place, 1, 2), random(2, 5, 7, learned=True))
    ones = torch.ones_like(torch.diagonal(irregular, place, 0, 2))
    agrees(lambda x: torch.diagonal_scatter(x, ones, place, 0, 2), irregular)
    agrees(lambda x: x.triu(place), random(5, 7, dtype=torch.bool))


def test_windows_of_a_dimension() -> None:
    agrees(lambda x: [x.unfold(1, 3, 2), x.unfold(0, 2, 1)], random(4, 9, 2, learned=True))
    agrees(lambda x: x.unfold(0, 1, 1), torch.tensor(2.0))


def test_columns_and_images() -> None:
    agrees(lambda x: functional.unfold(x, (2, 3), 2, 1, 2), random(2, 3, 9, 10, learned=True))
    agrees(lambda x: functional.fold(x, (7, 8), (2, 3), 1, 1, (2, 1)), random(2, 6, 32, learned=True))
    agrees(lambda x: functional.pixel_shuffle(x, 2), random(2, 8, 3, 4, learned=True))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_that_repeats(mode: str) -> None:
    agrees(lambda x: functional.pad(x, (2, 1), mode), random(3, 6, learned=True))
    agrees(lambda x: functional.pad(x, (2, 1, 1, 3), mode), random(2, 3, 5, 6, learned=True))
    agrees(lambda x: functional.pad(x, (2, 1, 1, 0, 0, 2), mode), random(1, 2, 3, 4, 5, learned=True))


def test_padding_that_crops() -> None:
    agrees(lambda x: functional.pad(x, (1, -2, 0, 3), value=2.5), random(2, 4, 5, learned=True))
    agrees(lambda x: functional.pad(x, (1, 2), value=True), random(3, 4, dtype=torch.bool))
    for pads in ((-2, 3), (4, -2), (-1, -1), (3, -5)):  # some leave nothing of the tensor
        agrees(lambda x, pads=pads: functional.pad(x, pads, "replicate"), random(2, 3, 3, learned=True))


def test_parts_that_are_replaced() -> None:
    def function(x: torch.Tensor, v: torch.Tensor) -> list[torch.Tensor]:
        mask = x.detach() > 0
        return [
            torch.slice_scatter(x, v[:2], 0, 1, 5, 2),
            torch.select_scatter(x, v[0], 0, -1),
            x.masked_scatter(mask, v),
            x.masked_fill(mask, 2),
            x.expand(2, 5, 6).clone().copy_(v[0]),
        ]

    agrees(function, random(5, 6, learned=True), random(7, 6, learned=True))
    agrees(lambda x: torch.slice_scatter(x, x[1:3], 0, 0, 2), random(5, 3), kernels=True)


def test_memory_by_strides() -> None:
    agrees(lambda x: [x.as_strided((2, 3), (2, 3), 1), x.as_strided((2, 2), (1, 1))], random(4, 5))
    agrees(lambda x, v: torch.as_strided_scatter(x, v, (2, 3), (4, 1), 2), random(4, 5), random(2, 3))
    found = refused(lambda x: x.t().as_strided((2,), (1,), 0) + 1, random(3, 4))
    assert found == {"aten.as_strided.default": "looks at memory that is not all its operand's"}
    many = random(1 << 21)
    found = refused(lambda x: torch.as_strided_scatter(x, x[: 3 << 19], (3 << 19,), (1,), 7), many)
    assert found == {"aten.as_strided_scatter.default": "writes to many elements by strides"}
