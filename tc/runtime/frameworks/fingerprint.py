"""Fingerprints of arrays on a GPU, by which a repeated call is recognized."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from tc.runtime.views.view import Fingerprint

if TYPE_CHECKING:
    from tc.runtime.frameworks.device_array import DeviceArray

# None for an array without a fingerprint: it may be refused, or its kernel needs more than its address.
FingerprintFunction: TypeAlias = Callable[[Any], Fingerprint | None]


def fingerprint_function(kind: type) -> FingerprintFunction | None:
    """Takes fingerprints of arrays of exactly this type; None where ``describe`` must look at each one."""
    torch, cupy, gpuarray = map(sys.modules.get, ("torch", "cupy", "pycuda.gpuarray"))
    own = sys.modules.get("tc.runtime.frameworks.device_array")
    if own is not None and kind is own.DeviceArray:
        return _own
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        from tc.runtime.frameworks.torch_arrays import torch_fingerprint

        return torch_fingerprint
    if cupy is not None and kind is cupy.ndarray:
        from tc.runtime.frameworks.cupy_arrays import cupy_fingerprint

        return cupy_fingerprint
    if gpuarray is not None and kind is gpuarray.GPUArray:
        from tc.runtime.frameworks.pycuda_arrays import gpuarray_fingerprint

        return gpuarray_fingerprint
    return None


def _own(array: DeviceArray) -> Fingerprint | None:
    return array.fingerprint if array.address else None  # no elements
