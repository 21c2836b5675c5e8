"""Arrays of any framework through DLPack, read in place (versions 0 and 1 of its C structures)."""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

from tc.base.counted import counted
from tc.base.errors import ArgumentError, DeviceError
from tc.base.types import Kind, ScalarType
from tc.runtime.cuda.chosen_stream import chosen_stream
from tc.runtime.views.view import (
    DEFAULT_STREAM,
    ArrayView,
    CudaMemory,
    Framework,
    check_address,
    element_strides,
    row_major,
    unsupported_type,
)


@runtime_checkable
class Exporter(Protocol):
    """An object of the array interchange protocol."""

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_size_t),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    )


_NAME: Final = b"dltensor"
_NAME_VERSIONED: Final = b"dltensor_versioned"
_MAJOR: Final = 1
_READ_ONLY: Final = 1

CUDA_DEVICE: Final = 2
_CUDA_MANAGED: Final = 13
_DEVICES: Final = MappingProxyType({1: "cpu", 3: "cuda_host", 4: "opencl", 8: "metal", 10: "rocm"})
_READABLE: Final = frozenset(("cpu", "cuda_host"))
# The default stream, as the protocol calls it: exporters make it wait until the elements are ready.
_LEGACY: Final = 1
# In place of a stream: nothing is to wait.
_NO_ORDER: Final = -1

_CODES: Final = MappingProxyType({Kind.SIGNED: 0, Kind.UNSIGNED: 1, Kind.FLOATING: 2, Kind.BOOLEAN: 6})
_EXTENSIONS: Final = MappingProxyType(
    {ScalarType.BFLOAT16: 4, ScalarType.FLOAT8_E4M3FN: 10, ScalarType.FLOAT8_E5M2: 12},
)
# Code and bits of every element type, and the way back.
CODES: Final = MappingProxyType(
    {t: (_EXTENSIONS.get(t, _CODES[t.kind]), 8 * t.itemsize) for t in ScalarType},
)
_TYPES: Final = MappingProxyType({code: type for type, code in CODES.items()})

_is_named = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
exported_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def describe_dlpack(array: Exporter, place: str, framework: Framework = Framework.OTHER) -> ArrayView:
    """The view of what ``array`` exports; the exported object, never consumed, is the lease and frees itself.

    DeviceError for memory that no target reads, ArgumentError for elements it cannot compute with.
    """
    code, index = map(int, array.__dlpack_device__())
    memory = CudaMemory(index, chosen_stream() or DEFAULT_STREAM) if code in (CUDA_DEVICE, _CUDA_MANAGED) else None
    device = _DEVICES.get(code, f"device type {code}")
    if memory is None and device not in _READABLE:
        raise DeviceError(f"{place}: the array is on {device}:{index}, which no target reads; copy it to the CPU")
    exported = _export(array, None if memory is None else _consumer(memory, framework), place)
    tensor, read_only = _read(exported, place)
    type = _TYPES.get((tensor.code, tensor.bits))
    if type is None or tensor.lanes != 1:
        raise unsupported_type(
            f"DLPack code {tensor.code}, {counted(tensor.bits, 'bit')}, {counted(tensor.lanes, 'lane')}", place
        )
    shape = tuple(tensor.shape[: tensor.ndim])
    given = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else row_major(shape)
    address = tensor.data + tensor.byte_offset
    strides = element_strides(shape, given, 1, place)
    view = ArrayView(address, shape, strides, type, not read_only, framework, array, exported, memory)
    check_address(address, view.size, type.itemsize, place)
    return view


def _consumer(memory: CudaMemory, framework: Framework) -> int | None:
    """The stream that is to wait for the elements, as the protocol calls it."""
    stream = memory.stream
    if not stream.handle:
        return _LEGACY
    from tc.runtime.cuda.chosen_driver import cuda_driver

    driver = cuda_driver()
    with driver.on(memory.device):
        if not driver.captures(stream):
            return stream.handle
    # What a graph waits for, its owner says.  JAX knows of no way not to wait: None lets this thread do it.
    return None if framework is Framework.JAX else _NO_ORDER


def _export(array: Exporter, stream: int | None, place: str) -> object:
    try:
        try:
            # Older exporters do not know the version, and those of memory of this machine not always the stream.
            if stream is None:
                return array.__dlpack__(max_version=(_MAJOR, 0))
            return array.__dlpack__(stream=stream, max_version=(_MAJOR, 0))
        except TypeError:
            return array.__dlpack__() if stream is None else array.__dlpack__(stream=stream)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(f"{place}: the array cannot be exported through DLPack: {error}") from error


def _read(exported: object, place: str) -> tuple[_DLTensor, bool]:
    """The exported tensor, and whether it is read-only."""
    if _is_named(exported, _NAME_VERSIONED):
        versioned = _ManagedVersioned.from_address(exported_pointer(exported, _NAME_VERSIONED))
        if versioned.major != _MAJOR:
            raise ArgumentError(f"{place}: DLPack version {versioned.major} is not supported, only up to {_MAJOR}")
        return versioned.tensor, bool(versioned.flags & _READ_ONLY)
    if _is_named(exported, _NAME):
        return _Managed.from_address(exported_pointer(exported, _NAME)).tensor, False
    raise ArgumentError(f"{place}: __dlpack__ returned {type(exported).__name__}, not a fresh DLPack object")
