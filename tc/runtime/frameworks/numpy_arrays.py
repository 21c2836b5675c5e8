"""NumPy's arrays in and out; bfloat16 and floats of eight bits are those of ml_dtypes."""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import numpy as np

from tc.base.errors import ArgumentError
from tc.base.types import Kind, ScalarType
from tc.runtime.host.pages import FRESH_BYTES, LEAST_BYTES
from tc.runtime.host.recycle import result_blocks
from tc.runtime.views.view import ArrayView, Framework, check_address, element_strides, unsupported_type

_LINE: Final = 64  # bytes

_KINDS: Final = MappingProxyType(
    {Kind.BOOLEAN: "b", Kind.SIGNED: "i", Kind.UNSIGNED: "u", Kind.FLOATING: "f"},
)
# NumPy has several dtypes of one size (long, long long), so types are found by what they are, not by name.
_TYPES: Final = MappingProxyType(
    {(_KINDS[t.kind], t.itemsize): t for t in ScalarType if not t.is_half or t is ScalarType.FLOAT16},
)
# Those of ml_dtypes, by name.
_EXTENSIONS: Final = MappingProxyType({t.value: t for t in ScalarType if t.is_half and t is not ScalarType.FLOAT16})


def scalar_type_of(dtype: np.dtype, place: str) -> ScalarType:
    """The type of elements of ``dtype``; ArgumentError for one that the language does not have."""
    if not dtype.isnative:
        raise ArgumentError(
            f"{place}: elements of dtype {dtype.str!r} are not in this machine's byte order; "
            'pass array.astype(array.dtype.newbyteorder("="))'
        )
    found = _TYPES.get((dtype.kind, dtype.itemsize))
    if found is not None:
        return found
    if dtype.name in _EXTENSIONS:
        return _EXTENSIONS[dtype.name]
    raise unsupported_type(dtype.name, place)


@functools.cache
def numpy_dtype(type: ScalarType) -> np.dtype:
    """NumPy's dtype for ``type``; ArgumentError for one of ml_dtypes' without that."""
    dtype: np.dtype = _extension(type) if type.value in _EXTENSIONS else np.dtype(type.value)
    return dtype


def _extension(type: ScalarType) -> np.dtype:
    try:
        import ml_dtypes
    except ImportError as error:
        raise ArgumentError(
            f"NumPy has no {type} of its own: pip install ml_dtypes, or pass PyTorch tensors"
        ) from error
    dtype: np.dtype = np.dtype(getattr(ml_dtypes, type.value))
    return dtype


def _address_reader() -> Callable[[np.ndarray], int]:
    """The quickest way to an array's address.

    NumPy's own attributes build a dictionary or an object around it, which costs as much as a small kernel.  The
    address is the first field after the object header (``PyArrayObject``, a documented structure); where a trial
    shows otherwise, the attribute is read after all.
    """
    offset = object.__basicsize__
    word = ctypes.c_size_t.from_address

    def read(array: np.ndarray) -> int:
        return word(id(array) + offset).value

    def ask(array: np.ndarray) -> int:
        return int(array.ctypes.data)

    block = np.arange(12.0).reshape(3, 4)
    return read if all(read(trial) == ask(trial) for trial in (block, block[1:, ::-1], block.T[2:])) else ask


numpy_address: Final = _address_reader()


def describe_numpy(array: np.ndarray, place: str) -> ArrayView:
    """The view of a NumPy array, or of a subclass whose elements are all there is to it."""
    # Where the module was not imported, which takes a tenth of a cold start, there is no such array.
    if isinstance(array, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())):
        raise ArgumentError(f"{place}: masked arrays are not supported; pass array.filled(value) or array.data")
    type = scalar_type_of(array.dtype, place)
    address = numpy_address(array)
    strides = element_strides(array.shape, array.strides, array.itemsize, place)
    check_address(address, array.size, array.itemsize, place)
    return ArrayView(address, array.shape, strides, type, array.flags.writeable, Framework.NUMPY, array)


def empty_bytes(size: int, alignment: int = 1) -> np.ndarray:
    """Uninitialized bytes that begin at a multiple of ``alignment``, up to a page; many lie on huge pages."""
    if size >= FRESH_BYTES:
        return result_blocks().lease(size)[:size]
    memory = np.empty(size + alignment - 1, np.uint8)
    start = -numpy_address(memory) % alignment
    return memory[start : start + size]


def numpy_allocator(shape: tuple[int, ...], type: ScalarType) -> Callable[[], np.ndarray]:
    """A function that allocates an uninitialized, C-contiguous array.

    Large ones begin with a line of the cache, as PyTorch's do, and the largest lie on huge pages of their own.
    """
    dtype, size = numpy_dtype(type), math.prod(shape) * type.itemsize
    if size < LEAST_BYTES:
        return functools.partial(np.empty, shape, dtype)
    return lambda: empty_bytes(size, _LINE).view(dtype).reshape(shape)
