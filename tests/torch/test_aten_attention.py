"""Attention of ATen and its gradient: masks, heads that share keys, scales, halves."""

from __future__ import annotations

import pytest
import torch

from tests.torch.agreement import agrees, random, refused

attention = torch.nn.functional.scaled_dot_product_attention


@pytest.mark.parametrize("causal", [False, True])
def test_queries_keys_and_values(causal: bool) -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> list[torch.Tensor]:
        return [attention(q, k, v, is_causal=causal), attention(q, k, v, scale=0.3)]

    q, k, v = (random(2, 3, length, 4, learned=True) for length in (5, 7, 7))
    agrees(function, q, k, v)
    with torch.no_grad():
        agrees(function, q, k, v, kernels=causal)


@pytest.mark.parametrize("by_position", [False, True])
def test_each_direction_is_one_kernel_that_writes_the_layout_of_its_results(by_position: bool) -> None:
    q, k, v = (random(2, 3, 9, 8, learned=True) for _ in range(3))
    if by_position:
        q, k, v = (random(2, 9, 3, 8).transpose(1, 2).requires_grad_() for _ in range(3))
    report = agrees(lambda q, k, v: attention(q, k, v, is_causal=True), q, k, v, kernels=True)
    assert [dict(part.counts) for part in report.parts] == [{}, {}]


def test_masks() -> None:
    q, k, v = (random(2, 3, length, 4, learned=True) for length in (5, 7, 7))
    seen = torch.rand(2, 1, 5, 7) > 0.4
    seen[:, :, 2] = False  # a query that sees no key
    numbers = torch.where(seen, torch.randn(2, 1, 5, 7), float("-inf"))
    for mask in (seen, numbers, random(5, 7), random(2, 3, 1, 7), random(7)[None] > 0):
        agrees(lambda q, k, v, mask: attention(q, k, v, attn_mask=mask), q, k, v, mask)


def test_heads_may_share_keys() -> None:
    q, k, v = random(2, 6, 5, 4, learned=True), random(2, 2, 7, 4, learned=True), random(2, 2, 7, 4, learned=True)
    agrees(lambda q, k, v: attention(q, k, v, enable_gqa=True), q, k, v)


def test_halves() -> None:
    q, k, v = (random(1, 2, 6, 8, dtype=torch.bfloat16, learned=True) for _ in range(3))
    agrees(attention, q, k, v, rtol=5e-2, atol=5e-2)


def test_layers_of_transformers() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    agrees(layer, random(2, 5, 8, learned=True))
    agrees(torch.nn.MultiheadAttention(8, 2, batch_first=True), *(random(2, 5, 8) for _ in range(3)))


def test_weights_that_are_dropped_are_pytorchs() -> None:
    q = random(1, 2, 3, 4)
    operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    name = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    assert refused(lambda q: operator(q, q, q, 0.5)[0], q)[name] == "drops weights at random"
