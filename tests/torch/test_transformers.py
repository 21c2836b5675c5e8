"""Whole transformer layers: what PyTorch's modules call without gradients."""

from __future__ import annotations

import functools

import pytest
import torch

from tc.torch.backend import backend
from tc.torch.report import Report


def agrees(model: torch.nn.Module, *inputs: torch.Tensor, **named: object) -> None:
    """Whether a module without gradients is whole, and computes what eager PyTorch does."""
    torch._dynamo.reset()
    report = Report()
    own = torch.compile(model, backend=functools.partial(backend, report=report), dynamic=False)
    with torch.no_grad():
        torch.testing.assert_close(own(*inputs, **named), model(*inputs, **named))
    assert all(not part.counts and not part.failures for part in report.parts)


@pytest.mark.parametrize(("activation", "norm_first"), [("relu", True), ("gelu", False)])
def test_encoder_layers_are_ours(activation: str, norm_first: bool) -> None:
    layer = torch.nn.TransformerEncoderLayer(12, 3, 7, 0.0, activation, batch_first=True, norm_first=norm_first).eval()
    agrees(layer, torch.randn(2, 5, 12))


@pytest.mark.parametrize("kind", ["pairs", "padding", "both"])
def test_masks_of_encoder_layers(kind: str) -> None:
    layer = torch.nn.TransformerEncoderLayer(12, 3, 7, batch_first=True).eval()
    pairs = torch.ones(5, 5, dtype=torch.bool).triu(1) if kind != "padding" else None
    padding = torch.arange(5).ge(torch.tensor([[3], [4]])) if kind != "pairs" else None
    agrees(layer, torch.randn(2, 5, 12), src_mask=pairs, src_key_padding_mask=padding)


@pytest.mark.parametrize(("need_weights", "average"), [(True, True), (True, False), (False, True)])
def test_attention_of_several_heads_gives_its_weights(need_weights: bool, average: bool) -> None:
    layer = torch.nn.MultiheadAttention(12, 3, batch_first=True).eval()
    x = torch.randn(2, 5, 12)
    agrees(layer, x, x, x, need_weights=need_weights, average_attn_weights=average)
