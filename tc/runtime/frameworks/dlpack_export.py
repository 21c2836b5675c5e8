"""Exports memory to other frameworks through DLPack (``dlpack.c``)."""

from __future__ import annotations

import ctypes
import functools

from tc.base.environment import environment
from tc.base.types import ScalarType
from tc.runtime.frameworks.dlpack import CODES, CUDA_DEVICE
from tc.runtime.host.library import load_library
from tc.runtime.host.native import native_binary


def export_cuda(address: int, shape: tuple[int, ...], type: ScalarType, device: int, owner: object) -> object:
    """Exports C-contiguous elements on a device; ``owner`` lives until the consumer releases the tensor."""
    extents = (ctypes.c_int64 * len(shape))(*shape)
    exported: object = _load().tc_export(address, CUDA_DEVICE, device, len(shape), extents, *CODES[type], owner)
    return exported


@functools.cache
def _load() -> ctypes.CDLL:
    library = load_library(native_binary("dlpack.c", environment()), ctypes.PyDLL)
    library.tc_export.argtypes = (
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_int32,
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_uint8,
        ctypes.c_uint8,
        ctypes.py_object,
    )
    library.tc_export.restype = ctypes.py_object
    return library
