"""Operators of ATen as others: PyTorch's decompositions, but for what rules take whole."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import torch
from torch._decomp import _core_aten_decompositions_post_autograd, get_decompositions

from tc.torch import bags, transformers

aten: Final = torch.ops.aten

# What rules take whole: products, which would be sums of what is computed apart; attention, whose gradient needs what
# its decomposition does not give; what moves elements by affine rules, which would become tensors of indices; Mish, for
# which one exponential suffices.
WHOLE: Final = (
    aten.mish.default,
    aten.mv.default,
    aten.dot.default,
    aten.baddbmm.default,
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten.tril.default,
    aten.triu.default,
    aten.roll.default,
    aten.im2col.default,
    aten.col2im.default,
    aten.unfold_backward.default,
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.reflection_pad3d.default,
    aten.reflection_pad1d_backward.default,
    aten.reflection_pad2d_backward.default,
    aten.reflection_pad3d_backward.default,
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.replication_pad3d.default,
)


@functools.cache
def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """By operator, the function that computes it by others.

    Operators that are composed of others in PyTorch itself are not listed: its tracer takes them apart in any case, and
    ``core_aten_decompositions`` takes a quarter of a second to collect them.
    """
    found: dict[Any, Callable[..., Any]] = dict(_core_aten_decompositions_post_autograd())
    for operator in WHOLE:
        found.pop(operator, None)
    return {
        **found,
        **get_decompositions([aten._batch_norm_with_update_functional]),
        **transformers.DECOMPOSITIONS,
        **bags.DECOMPOSITIONS,
        aten.native_dropout.default: _dropout,
        aten.native_dropout_backward.default: _dropout_gradient,
        aten.rrelu_with_noise_backward.default: _random_relu_gradient,
    }


def _dropout(input: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """PyTorch draws the mask, as ``torch.nn.functional.dropout`` does on a CPU, and scales it in the same way."""
    if train is False or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    if p == 1:
        return input * 0.0, torch.zeros_like(input, dtype=torch.bool)
    mask = aten.bernoulli.p(torch.empty_like(input, dtype=torch.bool), 1 - p)
    return input * mask * _scale(input, 1 - p), mask


def _dropout_gradient(grad_output: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    if scale == 0:
        return grad_output * 0.0
    return grad_output * mask * _scale(grad_output, 1 / scale)


def _scale(like: torch.Tensor, kept: float) -> torch.Tensor:
    """What elements that are kept are multiplied by, rounded to their type; halves are divided in float32."""
    number = 1 / kept if like.dtype is torch.float64 else float(np.float32(1) / np.float32(kept))
    return torch.full((), number, dtype=like.dtype, device=like.device)


def _random_relu_gradient(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    noise: torch.Tensor,
    lower: float,
    upper: float,
    training: bool,
    self_is_result: bool,
) -> torch.Tensor:
    if training and upper - lower > 1e-6:
        return grad_output * noise
    found: torch.Tensor = aten.leaky_relu_backward(grad_output, self, (lower + upper) / 2, self_is_result)
    return found
