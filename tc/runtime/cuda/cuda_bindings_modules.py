"""Kernels of cuda-bindings: one at a time, or many as a graph."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from tc.base.grid import GridKernel
from tc.runtime.cuda.cuda_bindings_calls import checked, cuda, reason, relaxed
from tc.runtime.cuda.cuda_driver import Launch, failure, launch_failed, packed_launch
from tc.runtime.views.view import Stream

_DYNAMIC_SHARED: Final = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class Module:
    """A library of the driver, whose kernels run in every context."""

    def __init__(self, library: Any, kernels: Sequence[GridKernel]) -> None:
        self._library = library
        self._kernels = [_kernel(library, kernel) for kernel in kernels]
        self._prepared: set[tuple[int, int]] = set()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # At its end, the process gives everything back, and the driver may be gone before its kernels.
        if not is_finalizing():
            with relaxed():
                cuda.cuLibraryUnload(self._library)

    def launch(self, number: int, arguments: bytes, stream: Stream, places: Sequence[int] = ()) -> None:
        """Starts kernel ``number`` in the current context; see ``LoadedModule``."""
        kernel, _, launch = self._kernels[number]
        if kernel.dynamic_bytes:
            self._prepare(number)
        packed = packed_launch(arguments, places)
        (status,) = launch(stream.handle, packed.parameters, packed.extra)
        if status:
            raise failure(status.name, launch_failed(kernel, reason(status)))

    def parameters(self, number: int, arguments: bytes, places: Sequence[int]) -> tuple[Any, object]:
        """Those of a node of a graph; the other object must be there until the driver has read them."""
        kernel, function, _ = self._kernels[number]
        if kernel.dynamic_bytes:
            self._prepare(number)
        packed = packed_launch(arguments, places)
        found = cuda.CUDA_KERNEL_NODE_PARAMS()
        found.kern = function
        found.gridDimX, found.gridDimY, found.gridDimZ = kernel.grid
        found.blockDimX, found.blockDimY, found.blockDimZ = kernel.block
        found.sharedMemBytes = kernel.dynamic_bytes
        if packed.parameters:
            found.kernelParams = packed.parameters
        else:
            found.extra = packed.extra
        return found, packed

    def _prepare(self, number: int) -> None:
        """Blocks get more shared memory than usual only after this."""
        device = int(checked(cuda.cuCtxGetDevice()))
        if (number, device) not in self._prepared:
            kernel, function, _ = self._kernels[number]
            (status,) = cuda.cuKernelSetAttribute(_DYNAMIC_SHARED, kernel.dynamic_bytes, function, device)
            if status:
                raise failure(status.name, launch_failed(kernel, reason(status)))
            self._prepared.add((number, device))


def _kernel(library: Any, kernel: GridKernel) -> tuple[GridKernel, Any, Callable[..., tuple[Any]]]:
    """With the driver's name for it, and what launches it."""
    function = checked(cuda.cuLibraryGetKernel(library, kernel.name.encode()))
    sizes = (*kernel.grid, *kernel.block, kernel.dynamic_bytes)
    return kernel, function, functools.partial(cuda.cuLaunchKernel, function, *sizes)


class Graph:
    """Nodes for launches, each of which waits for the one before, and the executable graph of them.

    Nodes are made one by one, and not captured from a stream: that needs no stream, disturbs no captures of others, and
    gives the nodes, whose arguments can be changed then.
    """

    def __init__(self, launches: Sequence[Launch]) -> None:
        self._graph: Any = None
        self._executable: Any = None
        self._graph = checked(cuda.cuGraphCreate(0))
        self._nodes: list[tuple[Any, Module, int, tuple[int, ...]]] = []
        before: list[Any] = []
        for launch in launches:
            module = launch.module
            assert isinstance(module, Module)
            parameters, _kept = module.parameters(launch.number, launch.arguments, launch.places)
            node = checked(cuda.cuGraphAddKernelNode(self._graph, before, len(before), parameters))
            self._nodes.append((node, module, launch.number, launch.places))
            before = [node]
        self._executable = checked(cuda.cuGraphInstantiate(self._graph, 0))

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # What still runs is let go of when it has ended (CUDA Driver API, ``cuGraphExecDestroy``).
        if is_finalizing():
            return
        with relaxed():
            if self._executable is not None:
                cuda.cuGraphExecDestroy(self._executable)
            if self._graph is not None:
                cuda.cuGraphDestroy(self._graph)

    def change(self, place: int, arguments: bytes) -> None:
        """The arguments of the launch at a place among all, from the next run on."""
        node, module, number, places = self._nodes[place]
        parameters, _kept = module.parameters(number, arguments, places)
        checked(cuda.cuGraphExecKernelNodeSetParams(self._executable, node, parameters))

    def run(self, stream: Stream) -> None:
        """Starts all of them in the order of a stream, after earlier runs."""
        checked(cuda.cuGraphLaunch(self._executable, stream.handle))
