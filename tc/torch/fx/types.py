"""Element types of PyTorch and ours, and what shapes are while PyTorch traces."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import torch

from tc.base.types import ScalarType

_FOUND: Final = {type: getattr(torch, type.value, None) for type in ScalarType}
TYPES: Final[Mapping[torch.dtype, ScalarType]] = MappingProxyType(
    {dtype: type for type, dtype in _FOUND.items() if isinstance(dtype, torch.dtype)}
)
DTYPES: Final[Mapping[ScalarType, torch.dtype]] = MappingProxyType({type: dtype for dtype, type in TYPES.items()})


def hinted(size: int | torch.SymInt) -> int:
    """A size as it was in the example that PyTorch traces."""
    return size if isinstance(size, int) else int(size.node.hint)


def hinted_shape(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape of a tensor in the example that PyTorch traces."""
    return tuple(map(hinted, tensor.shape))
