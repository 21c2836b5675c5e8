"""PyTorch's whole transformer layers, which its modules call without gradients, as attention, norms and products."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch
from torch.nn import functional

aten: Final = torch.ops.aten
Tensor = torch.Tensor
# What dimensions a mask has: queries and keys, batch and keys, or all.
_PAIRS, _PADDING = 0, 1


def _encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    def first(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def attended(x: Tensor) -> Tensor:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return _multi_head(x, x, x, embed_dim, num_heads, *weights, mask, False, True, mask_type)[0]

    def fed_forward(x: Tensor) -> Tensor:
        inner = functional.linear(x, ffn_weight_1, ffn_bias_1)
        inner = functional.gelu(inner) if use_gelu else functional.relu(inner)
        return functional.linear(inner, ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attended(first(src))
        return x + fed_forward(second(x))
    x = first(src + attended(src))
    return second(x + fed_forward(x))


def _multi_head(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    if query is key and key is value:
        parts = functional.linear(query, qkv_weight, qkv_bias).chunk(3, -1)
    else:
        every = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
        parts = tuple(functional.linear(*one) for one in every)
    q, k, v = (part.reshape(*part.shape[:-1], num_head, -1).transpose(1, 2) for part in parts)
    if mask is None and not need_weights:
        found, weights = functional.scaled_dot_product_attention(q, k, v), query.new_empty(0)
    else:
        scores = (q * (embed_dim // num_head) ** -0.5) @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(_for_scores(mask, mask_type), float("-inf"))
        weights = scores.softmax(-1)
        found = weights @ v
        if not need_weights:
            weights = query.new_empty(0)
        elif average_attn_weights:
            weights = weights.mean(1)
    return functional.linear(found.transpose(1, 2).flatten(2), proj_weight, proj_bias), weights


def _for_scores(mask: Tensor, kind: int | None) -> Tensor:
    """The mask with dimensions for batch, heads, queries and keys: what is true takes no part."""
    if kind == _PADDING:
        return mask[:, None, None, :]
    return mask[None, None] if kind == _PAIRS else mask


DECOMPOSITIONS: Final[Mapping[Any, Callable[..., Any]]] = MappingProxyType(
    {
        aten._transformer_encoder_layer_fwd.default: _encoder_layer,
        aten._native_multi_head_attention.default: _multi_head,
    }
)
