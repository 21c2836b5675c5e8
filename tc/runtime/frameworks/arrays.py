"""Arrays of any framework in and out.

A *place* is how errors name an argument, for example ``argument A of mm``.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

import numpy as np

from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.runtime.frameworks.array_bytes import overlaps_itself
from tc.runtime.frameworks.numpy_arrays import describe_numpy, numpy_address, numpy_allocator
from tc.runtime.views.view import ArrayView, Framework


def describe(array: object, place: str) -> ArrayView:
    """What ``array`` is and where its elements lie, without copying them.

    Understands NumPy arrays, PyTorch tensors, JAX, CuPy and PyCUDA arrays, and what exports ``__dlpack__``,
    ``__cuda_array_interface__`` or ``__array_interface__``.  ArgumentError for anything else, and for elements the
    language does not have; DeviceError for memory that no target reads.
    """
    if isinstance(array, np.ndarray):
        return describe_numpy(array, place)
    # An object of a framework that was never imported cannot exist.
    torch, jax, cupy, gpuarray = map(sys.modules.get, ("torch", "jax", "cupy", "pycuda.gpuarray"))
    if torch is not None and isinstance(array, torch.Tensor):
        from tc.runtime.frameworks.torch_arrays import describe_torch

        return describe_torch(array, place)
    if jax is not None and isinstance(array, (jax.Array, jax.core.Tracer)):
        from tc.runtime.frameworks.jax_arrays import describe_jax

        return describe_jax(array, place)
    own = sys.modules.get("tc.runtime.frameworks.device_array")
    if own is not None and isinstance(array, own.DeviceArray):
        view: ArrayView = array.view()
        return view
    if cupy is not None and isinstance(array, cupy.ndarray):
        from tc.runtime.frameworks.cupy_arrays import describe_cupy

        return describe_cupy(array, place)
    if gpuarray is not None and isinstance(array, gpuarray.GPUArray):
        from tc.runtime.frameworks.pycuda_arrays import describe_gpuarray

        return describe_gpuarray(array, place)
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        from tc.runtime.frameworks.dlpack import describe_dlpack

        return describe_dlpack(array, place)
    if hasattr(array, "__cuda_array_interface__"):
        from tc.runtime.frameworks.cuda_interface import describe_cuda_interface

        return describe_cuda_interface(array, place)
    if hasattr(array, "__array_interface__"):
        return _describe_interface(array, place)
    raise ArgumentError(
        f"{place}: expected an array (NumPy, PyTorch, JAX, CuPy, PyCUDA, DLPack or __array_interface__), got "
        f"{type(array).__name__}; numpy.asarray makes one of lists and numbers"
    )


def _describe_interface(array: object, place: str) -> ArrayView:
    try:
        view = np.asarray(array)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{place}: its __array_interface__ is not valid: {error}") from error
    if view.flags.owndata:  # a copy, as NumPy makes it of its own numbers: what is written there is lost
        view.flags.writeable = False
    return replace(describe_numpy(view, place), framework=Framework.OTHER, owner=array, lease=view)


def describe_output(array: object, place: str) -> ArrayView:
    """``describe`` for an array to be written: ArgumentError when it is read-only, JAX's, overlaps itself, or is
    followed by autograd.
    """
    view = describe(array, place)
    if view.framework is Framework.JAX:
        raise ArgumentError(f"{place}: JAX arrays never change, so they cannot be outputs; use the returned array")
    if not view.writable:
        raise ArgumentError(f"{place}: the array is read-only; pass one that may be written")
    if view.followed:
        raise followed(place)
    if overlaps_itself(view):
        raise ArgumentError(
            f"{place}: several of its elements share one place in memory (strides {view.strides} for shape "
            f"{view.shape}); pass an array with an element in every place"
        )
    return view


def followed(place: str) -> ArgumentError:
    """The error for a tensor that autograd cannot follow: one that a kernel is given, a scalar, a result."""
    return ArgumentError(
        f"{place}: the tensor requires a gradient, which this call cannot give; pass .detach(), or call under "
        "torch.no_grad()"
    )


def announcer(framework: Framework) -> Callable[..., object] | None:
    """What must be called with an array before its elements change, also if the launch fails; mostly nothing."""
    if framework is not Framework.TORCH:
        return None
    from tc.runtime.frameworks.torch_arrays import mark_written

    return mark_written


def address_of(memory: object) -> int:
    """The address of what an ``allocator`` made."""
    return numpy_address(memory) if isinstance(memory, np.ndarray) else describe(memory, "a fresh result").address


def allocator(framework: Framework, shape: tuple[int, ...], type: ScalarType) -> Callable[[], object]:
    """A function that allocates uninitialized, C-contiguous memory of this machine, to be passed to ``deliver``.

    ArgumentError when the framework has no such type.
    """
    match framework:
        case Framework.TORCH:
            from tc.runtime.frameworks.torch_arrays import torch_allocator

            return torch_allocator(shape, type)
        case Framework.JAX:
            from tc.runtime.frameworks.jax_arrays import allocate_for_jax

            return functools.partial(allocate_for_jax, shape, type)
        case Framework.NUMPY | Framework.CUPY | Framework.PYCUDA | Framework.OTHER:
            return numpy_allocator(shape, type)
        case _:
            assert_never(framework)


def deliver(memory: object, framework: Framework, type: ScalarType) -> object:
    """What the caller gets for ``memory``, once it holds a result: itself, or a JAX array over it."""
    if framework is Framework.JAX and isinstance(memory, np.ndarray):
        from tc.runtime.frameworks.jax_arrays import deliver_to_jax

        return deliver_to_jax(memory, type)
    return memory
