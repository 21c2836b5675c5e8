"""What calls that autograd follows and operators do alike: batches, and adjoints of all floating results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

# Of a result: its shape, its type, its device.
Like: TypeAlias = tuple[torch.Size, torch.dtype, torch.device]


def by_members(
    call: Callable[..., Sequence[torch.Tensor]], size: int, in_dims: Sequence[int | None], arguments: Sequence[Any]
) -> tuple[torch.Tensor, ...]:
    """The results of a call for each member of a batch, stacked along a first dimension."""
    results = []
    for member in range(size):
        pairs = zip(arguments, in_dims, strict=True)
        results.append(call(*(own if place is None else own.select(place, member) for own, place in pairs)))
    return tuple(torch.stack(parts) for parts in zip(*results, strict=True))


def whole_adjoints(
    adjoints: Sequence[torch.Tensor | None], like: Sequence[Like], floating: Sequence[bool]
) -> list[torch.Tensor]:
    """The adjoints of the floating results: 0 where nothing depends on one.

    Expanded ones, as of a sum, would be other kernels than those that were tuned.
    """
    return [
        torch.zeros(shape, dtype=dtype, device=device) if own is None else own.contiguous()
        for own, (shape, dtype, device), is_floating in zip(adjoints[: len(floating)], like, floating, strict=True)
        if is_floating
    ]
