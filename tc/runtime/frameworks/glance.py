"""What an array on a GPU is, told at a glance: enough to recognize a call that was made before."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from tc.runtime.views.view import Seen

if TYPE_CHECKING:
    from tc.runtime.frameworks.device_array import DeviceArray

# None for an array that must be described thoroughly: it may be refused, or needs more than its address.
Glance: TypeAlias = Callable[[Any], Seen | None]


def glance_of(kind: type) -> Glance | None:
    """How arrays of exactly this type are looked at; None where only ``describe`` can tell."""
    torch, cupy, gpuarray = map(sys.modules.get, ("torch", "cupy", "pycuda.gpuarray"))
    own = sys.modules.get("tc.runtime.frameworks.device_array")
    if own is not None and kind is own.DeviceArray:
        return _own
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        from tc.runtime.frameworks.torch_arrays import glance_torch

        return glance_torch
    if cupy is not None and kind is cupy.ndarray:
        from tc.runtime.frameworks.cupy_arrays import glance_cupy

        return glance_cupy
    if gpuarray is not None and kind is gpuarray.GPUArray:
        from tc.runtime.frameworks.pycuda_arrays import glance_gpuarray

        return glance_gpuarray
    return None


def _own(array: DeviceArray) -> Seen | None:
    return array.glance if array.address else None  # no elements
