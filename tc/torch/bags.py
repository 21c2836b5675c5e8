"""Sums and means of rows of a table by bags, as gathers and scatters.

Greatest elements stay PyTorch's, and gradients that are sparse, or scaled by how often a row is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

Tensor = torch.Tensor
aten: Final = torch.ops.aten
_MEAN: Final = 1
_MAX: Final = 2


def _bags(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """The results of bags, the bag of each index, and how many of each bag count."""
    if mode == _MAX or sparse or scale_grad_by_freq:
        return NotImplemented
    starts = offsets[:-1] if include_last_offset else offsets
    # Bags that begin before an index or at it; empty ones may begin behind the last.
    begun = aten.index_add(starts.new_zeros(indices.shape[0] + 1), 0, starts, torch.ones_like(starts))
    bag = begun.cumsum(0)[:-1] - 1
    rows = _scaled(weight.index_select(0, indices), indices, per_sample_weights, padding_idx)
    result = aten.index_add(weight.new_zeros(starts.shape[0], weight.shape[1]), 0, bag, rows)
    counted = (indices != padding_idx).to(starts.dtype)
    sizes = aten.index_add(torch.zeros_like(starts), 0, bag, counted)
    if mode == _MEAN:
        result = result / sizes.clamp(min=1).to(weight.dtype)[:, None]
    return result, bag, sizes, torch.zeros_like(sizes)


def _scaled(rows: Tensor, indices: Tensor, weights: Tensor | None, padding: int) -> Tensor:
    """Rows times their weights; those of padding are 0."""
    found = rows if weights is None else rows * weights[:, None]
    return found if padding < 0 else torch.where((indices == padding)[:, None], 0, found)


def _table_gradient(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Any:
    """That of the table."""
    del offsets, maximum_indices
    if mode == _MAX or sparse or scale_grad_by_freq:
        return NotImplemented
    if mode == _MEAN:
        grad = grad / bag_size.clamp(min=1).to(grad.dtype)[:, None]
    rows = _scaled(grad.index_select(0, offset2bag), indices, per_sample_weights, padding_idx)
    return aten.index_add(grad.new_zeros(num_weights, grad.shape[1]), 0, indices, rows)


def _weights_gradient(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Any:
    """That of the weights of indices."""
    del offsets, mode
    rows = grad.index_select(0, offset2bag) * weight.index_select(0, indices)
    return _scaled(rows, indices, None, padding_idx).sum(1)


DECOMPOSITIONS: Final[Mapping[Any, Callable[..., Any]]] = {
    aten._embedding_bag.default: _bags,
    aten._embedding_bag_forward_only.default: _bags,
    aten._embedding_bag_backward.default: _table_gradient,
    aten._embedding_bag_per_sample_weights_backward.default: _weights_gradient,
}
