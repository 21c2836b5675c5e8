"""Operators of ATen as others: PyTorch's decompositions, but for what rules take whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch._decomp import core_aten_decompositions

aten: Final = torch.ops.aten

# What rules take whole: products, which would be sums of what is computed apart; attention, whose gradient needs what
# its decomposition does not give; what moves elements by affine rules, which would become tensors of indices.
WHOLE: Final = (
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


def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """By operator, the function that computes it by others."""
    found: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    for operator in WHOLE:
        found.pop(operator, None)
    return found
