"""CuPy's arrays in and out.  Imported only when an argument is one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, cast

import cupy

from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.runtime.frameworks.cuda_interface import describe_cuda_interface
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tc.runtime.views.view import DEFAULT_STREAM, ArrayView, CudaMemory, Fingerprint, Framework, Stream

# The handle that names the default stream, besides 0.
_LEGACY: Final = 1


def describe_cupy(array: cupy.ndarray, place: str) -> ArrayView:
    """The view of an array, ready on CuPy's current stream."""
    device = array.device.id
    return describe_cuda_interface(array, place, Framework.CUPY, device, _current_stream(device))


def _current_stream(device: int) -> Stream:
    handle = cupy.cuda.get_current_stream(device).ptr
    return Stream(handle) if handle > _LEGACY else DEFAULT_STREAM


def cupy_fingerprint(array: cupy.ndarray) -> Fingerprint | None:
    """An array on a GPU."""
    device, address = array.device.id, array.data.ptr
    what = ("cupy", array.dtype, device, array.shape, array.strides)
    return (what, address, _current_stream(device)) if address else None


def cupy_allocator(shape: tuple[int, ...], type: ScalarType, memory: CudaMemory) -> Callable[[], cupy.ndarray]:
    """A function that allocates an uninitialized array from CuPy's pool, for work on the stream of ``memory``.

    ArgumentError from the function when this CuPy has no such elements.
    """
    dtype = numpy_dtype(type)

    def allocate() -> cupy.ndarray:
        with cupy.cuda.Device(memory.device), _current(memory):
            try:
                return cupy.empty(shape, dtype)
            except (TypeError, ValueError) as error:
                raise ArgumentError(
                    f"CuPy {cupy.__version__} holds no {type} results ({error}); pass out= with an array of another "
                    "framework, or update CuPy"
                ) from error

    return allocate


def _current(memory: CudaMemory) -> AbstractContextManager[object]:
    """In the block, the stream of ``memory`` is CuPy's current one."""
    if _current_stream(memory.device) == memory.stream:
        return nullcontext()
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cast("AbstractContextManager[object]", cupy.cuda.Stream.from_external(memory.stream))
    return cast("AbstractContextManager[object]", cupy.cuda.ExternalStream(memory.stream.handle))  # before CuPy 14
