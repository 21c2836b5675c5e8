"""PyCUDA's arrays in and out.  Imported only when an argument is one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pycuda.driver as cuda
from pycuda.gpuarray import GPUArray

from tc.base.errors import DeviceError
from tc.base.types import ScalarType
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.pycuda_contexts import has_context, primary_context, pushed
from tc.runtime.frameworks.cuda_interface import describe_cuda_interface
from tc.runtime.frameworks.device_array import DeviceArray
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tc.runtime.views.view import DEFAULT_STREAM, ArrayView, CudaMemory, Fingerprint, Framework


def describe_gpuarray(array: GPUArray, place: str) -> ArrayView:
    """The view of an array, ready on the default stream, on which PyCUDA computes with arrays."""
    return describe_cuda_interface(array, place, Framework.PYCUDA)


def gpuarray_fingerprint(array: GPUArray) -> Fingerprint | None:
    """An array that holds elements."""
    try:
        address = int(array.gpudata)
        device = cuda_driver().device_of(address)
    except (DeviceError, TypeError, ValueError):  # it has no memory, or memory of an unknown device
        return None
    return ("pycuda", array.dtype, device, array.shape, array.strides), address, DEFAULT_STREAM


def gpuarray_allocator(shape: tuple[int, ...], type: ScalarType, like: object, device: int) -> Callable[[], GPUArray]:
    """A function that allocates an uninitialized array where the allocator of ``like``, the caller's, takes memory.

    Threads without a context of PyCUDA on the device have none of its allocators.
    """
    dtype = numpy_dtype(type)
    assert isinstance(like, GPUArray)

    def allocate() -> GPUArray:
        with _translated():
            if has_context(device):
                return GPUArray(shape, dtype, like.allocator)
            with pushed(primary_context(device)):
                memory = None if 0 in shape else _Memory(math.prod(shape) * dtype.itemsize, device)
                return GPUArray(shape, dtype, like.allocator, gpudata=memory)

    return allocate


def gpuarray_workspace(size: int, like: object, memory: CudaMemory) -> object:
    """So many bytes for a kernel: from the allocator of ``like``, unless it is PyCUDA's own, or none is in reach.

    PyCUDA's own waits for the whole device when it frees memory.
    """
    assert isinstance(like, GPUArray)
    if like.allocator is not cuda.mem_alloc and has_context(memory.device):
        return gpuarray_allocator((size,), ScalarType.UINT8, like, memory.device)()
    return DeviceArray((size,), ScalarType.UINT8, memory)


@contextmanager
def _translated() -> Iterator[None]:
    """Errors of PyCUDA in the block as ours."""
    try:
        yield
    except cuda.MemoryError as error:
        raise MemoryError(f"the CUDA device has not enough memory left ({error})") from error
    except cuda.Error as error:
        raise DeviceError(f"PyCUDA cannot allocate an array: {error}") from error


class HeldArrays:
    """Keeps arrays, or memory, and lets go of them in the context of now: PyCUDA frees them there in any thread."""

    def __init__(self, arrays: Sequence[object], device: int) -> None:
        self._arrays = list(arrays)
        self._context = cuda.Context.get_current() or primary_context(device)
        # At the end of the process, this may be called when the names of modules are gone.
        self._detached: Final = cuda.Error

    def __del__(self) -> None:
        try:
            self._context.get_api_version()  # a push that fails leaves the thread without the context that it had
            self._context.push()
        except self._detached:  # and the memory is gone
            self._arrays.clear()
            return
        try:
            self._arrays.clear()
        finally:
            self._context.pop()


class _Memory(cuda.PointerHolderBase):  # type: ignore[misc]
    """Memory of an array that any thread may let go of; the primary context must be current."""

    def __init__(self, size: int, device: int) -> None:
        super().__init__()
        memory = cuda.mem_alloc(size)
        self._address = int(memory)
        self._held = HeldArrays([memory], device)

    def get_pointer(self) -> int:
        return self._address
