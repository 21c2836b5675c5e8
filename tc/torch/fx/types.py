"""Element types of PyTorch and ours, and what shapes are while PyTorch traces."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, overload

import numpy as np
import torch

from tc.base.types import ScalarType

_FOUND: Final = {type: getattr(torch, type.value, None) for type in ScalarType}
TYPES: Final[Mapping[torch.dtype, ScalarType]] = MappingProxyType(
    {dtype: type for type, dtype in _FOUND.items() if isinstance(dtype, torch.dtype)}
)
DTYPES: Final[Mapping[ScalarType, torch.dtype]] = MappingProxyType({type: dtype for dtype, type in TYPES.items()})


@overload
def hinted(size: int | torch.SymInt) -> int: ...
@overload
def hinted(size: torch.SymFloat | torch.SymBool) -> float | bool: ...


def hinted(size: int | torch.SymInt | torch.SymFloat | torch.SymBool) -> float | bool:
    """A size, or a number that is computed of sizes, as it was in the example that PyTorch traces."""
    if isinstance(size, int):
        return size
    found: float | bool = size.node.hint
    return found


def hinted_shape(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape of a tensor in the example that PyTorch traces."""
    return tuple(map(hinted, tensor.shape))


def array_as(numbers: Any, type: ScalarType) -> np.ndarray:
    """Numbers as an array of a type: integers wrap."""
    if type.is_half:
        import ml_dtypes  # NumPy knows its types by name then

        del ml_dtypes
    return np.asarray(numbers).astype(np.dtype(type.value))
