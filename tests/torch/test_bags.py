"""Bags of rows of a table: empty ones, padding, weights, gradients; what stays PyTorch's."""

from __future__ import annotations

import functools

import pytest
import torch
from torch.nn.functional import embedding_bag

from tests.torch.agreement import agrees, random

INDICES, OFFSETS = torch.tensor([1, 4, 4, 0, 2, 1, 3]), torch.tensor([0, 3, 3, 5, 7])


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding", [None, 4])
def test_bags(mode: str, padding: int | None) -> None:
    bags = functools.partial(embedding_bag, mode=mode, padding_idx=padding)
    agrees(lambda w: bags(INDICES, w, OFFSETS), random(5, 3, learned=True), kernels=padding is None)
    agrees(lambda w: bags(INDICES, w, OFFSETS, include_last_offset=True), random(5, 3))
    agrees(lambda w: bags(INDICES[:6].reshape(2, 3), w), random(5, 3, learned=True))


def test_weights_of_indices() -> None:
    def function(w: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return embedding_bag(INDICES, w, OFFSETS, mode="sum", per_sample_weights=s, padding_idx=2)

    agrees(function, random(5, 3, learned=True), random(7, learned=True))
    agrees(lambda w: embedding_bag(INDICES[:0], w, OFFSETS[:1]), random(5, 3))


def test_greatest_elements_of_bags_stay_pytorchs() -> None:
    left = {"aten._embedding_bag_forward_only.default"}
    agrees(
        lambda w: embedding_bag(INDICES, w, OFFSETS, mode="max") + 1,
        random(5, 3),
        left={*left, "<built-in function getitem>"},
    )
