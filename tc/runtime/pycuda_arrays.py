"""PyCUDA's arrays in and out.  Imported only when an argument is one."""

from __future__ import annotations

from collections.abc import Callable

from pycuda.gpuarray import GPUArray

from tc.runtime.chosen_driver import cuda_driver
from tc.runtime.cuda_interface import describe_cuda_interface
from tc.runtime.numpy_arrays import numpy_dtype
from tc.runtime.view import ArrayView, Framework
from tc.types import ScalarType


def describe_gpuarray(array: GPUArray, place: str) -> ArrayView:
    """The view of an array, ready on the default stream, on which PyCUDA computes with arrays."""
    return describe_cuda_interface(array, place, Framework.PYCUDA)


def gpuarray_allocator(shape: tuple[int, ...], type: ScalarType, like: object, device: int) -> Callable[[], GPUArray]:
    """A function that allocates an uninitialized array where the allocator of ``like``, the caller's, takes memory."""
    dtype = numpy_dtype(type)
    assert isinstance(like, GPUArray)

    def allocate() -> GPUArray:
        with cuda_driver().on(device):
            return GPUArray(shape, dtype, allocator=like.allocator)

    return allocate
