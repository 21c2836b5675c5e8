"""Element types of PyTorch and ours, and what shapes are while PyTorch traces."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
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


def array_as(numbers: Any, type: ScalarType) -> np.ndarray:
    """Numbers as an array of a type: integers wrap."""
    if type.is_half:
        import ml_dtypes  # NumPy knows its types by name then

        del ml_dtypes
    return np.asarray(numbers).astype(np.dtype(type.value))
