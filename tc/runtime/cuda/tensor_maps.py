"""Descriptions of tensors that kernels copy boxes of (CUDA Driver API: ``cuTensorMapEncodeTiled``).

They depend on the address of a tensor, and on nothing else that is known at a call.
"""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final

from tc.base.grid import TensorMap
from tc.base.types import ScalarType
from tc.runtime.cuda.libcuda import Libcuda

MAP_BYTES: Final = 128
# Where a description lies in memory, and the tensor itself.
_ALIGNMENT: Final = 64
_UNIT: Final = 16
# CU_TENSOR_MAP_DATA_TYPE_* of cuda.h.
_TYPES: Final = MappingProxyType(
    {
        ScalarType.UINT8: 0,
        ScalarType.INT8: 0,
        ScalarType.FLOAT16: 6,
        ScalarType.FLOAT32: 7,
        ScalarType.BFLOAT16: 9,
    }
)
# No interleaving, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, and zeros outside of the tensor.
_PLAIN, _SWIZZLE, _PROMOTION, _ZEROS = 0, 3, 2, 0
_MOST: Final = 1 << 10


@lru_cache(maxsize=_MOST)
def described(map: TensorMap, address: int) -> bytes:
    """The description of a tensor at an address, as kernels are given it; DeviceError where the driver refuses it.

    Zeros where the tensor does not begin at a multiple of 16 bytes: kernels make no use of it then.
    """
    if address % _UNIT:
        return bytes(MAP_BYTES)
    rank = len(map.shape)
    longs, words = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
    room = ctypes.create_string_buffer(MAP_BYTES + _ALIGNMENT)
    begin = -ctypes.addressof(room) % _ALIGNMENT
    _libcuda().call(
        "cuTensorMapEncodeTiled",
        ctypes.addressof(room) + begin,
        _TYPES[map.type],
        rank,
        address,
        longs(*reversed(map.shape)),
        longs(*reversed(map.strides)),
        words(*reversed(map.box)),
        words(*[1] * rank),
        _PLAIN,
        _SWIZZLE,
        _PROMOTION,
        _ZEROS,
    )
    return room.raw[begin : begin + MAP_BYTES]


@cache
def _libcuda() -> Libcuda:
    """The driver's library, which has been loaded before a kernel is launched."""
    return Libcuda()
