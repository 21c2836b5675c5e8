"""Memory of a GPU for results and temporaries, from the allocator of the caller's framework."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, assert_never

from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.views.view import CudaMemory, Framework

if TYPE_CHECKING:
    from tc.runtime.frameworks.device_array import DeviceArray


def cuda_allocator(
    framework: Framework, shape: tuple[int, ...], type: ScalarType, memory: CudaMemory, like: object
) -> Callable[[], object]:
    """A function that allocates uninitialized, C-contiguous memory for work on a stream, to be passed to
    ``deliver_cuda``.  ``like``: an argument of the call.

    ArgumentError when the framework has no such type.
    """
    match framework:
        case Framework.TORCH:
            from tc.runtime.frameworks.torch_arrays import torch_cuda_allocator

            return torch_cuda_allocator(shape, type, memory)
        case Framework.CUPY:
            from tc.runtime.frameworks.cupy_arrays import cupy_allocator

            return cupy_allocator(shape, type, memory)
        case Framework.PYCUDA:
            from tc.runtime.frameworks.pycuda_arrays import gpuarray_allocator

            return gpuarray_allocator(shape, type, like, memory.device)
        case Framework.JAX:
            from tc.runtime.frameworks.jax_arrays import check_for_jax

            check_for_jax(type)
            return lambda: _for_jax(shape, type, memory, like)
        case Framework.NUMPY | Framework.OTHER:
            return lambda: _own(shape, type, memory)
        case _:
            assert_never(framework)


def cuda_workspace(framework: Framework, size: int, memory: CudaMemory, like: object) -> object:
    """So many bytes for a single call, from the same allocator; in a graph they are memory of the graph."""
    if framework is Framework.TORCH:
        return cuda_allocator(framework, (size,), ScalarType.UINT8, memory, like)()
    # Other pools do not know of captures: what they take back serves the next array, and the graph still uses it.
    if framework is Framework.CUPY and not _captures(memory):
        return cuda_allocator(framework, (size,), ScalarType.UINT8, memory, like)()
    if framework is Framework.PYCUDA and not _captures(memory):
        from tc.runtime.frameworks.pycuda_arrays import gpuarray_workspace

        return gpuarray_workspace(size, like, memory)
    from tc.runtime.frameworks.device_array import DeviceArray

    return DeviceArray((size,), ScalarType.UINT8, memory)


def held(leases: Sequence[object], frameworks: Collection[Framework], device: int) -> Sequence[object]:
    """Objects to keep until kernels have run, which any thread may let go of."""
    if not leases or Framework.PYCUDA not in frameworks:
        return leases
    from tc.runtime.frameworks.pycuda_arrays import HeldArrays

    return (HeldArrays(leases, device),)


def _own(shape: tuple[int, ...], type: ScalarType, memory: CudaMemory) -> DeviceArray:
    from tc.runtime.frameworks.device_array import DeviceArray

    _require_no_graph(memory, "pass out= with an array that lives as long as the graph")
    return DeviceArray(shape, type, memory)


def _for_jax(shape: tuple[int, ...], type: ScalarType, memory: CudaMemory, like: object) -> DeviceArray:
    from tc.runtime.cuda.deferred_free import DEFERRED_FREE
    from tc.runtime.frameworks.device_array import DeviceArray
    from tc.runtime.frameworks.jax_arrays import JaxEnd

    _require_no_graph(memory, "JAX's arrays never change, so make graphs with those of another framework")
    DEFERRED_FREE.follow_jax(memory.device, lambda: JaxEnd(like))
    return DeviceArray(shape, type, memory)


def _require_no_graph(memory: CudaMemory, remedy: str) -> None:
    """ArgumentError if a result would become memory of a graph, which may then run only once."""
    if _captures(memory):
        raise ArgumentError(
            "the stream of this call captures a graph, in which tc has no memory for results that stay; " + remedy
        )


def _captures(memory: CudaMemory) -> bool:
    """Whether the work on a stream becomes part of a graph."""
    driver = cuda_driver()
    with driver.on(memory.device):
        return driver.captures(memory.stream)


def deliver_cuda(memory: object, framework: Framework) -> object:
    """What the caller gets for ``memory``, once a result is on its way there: itself, or a JAX array over it."""
    if framework is not Framework.JAX:
        return memory
    from tc.runtime.frameworks.device_array import DeviceArray
    from tc.runtime.frameworks.jax_arrays import deliver_device_array

    assert isinstance(memory, DeviceArray)
    return deliver_device_array(memory)
