"""The resources of a machine that a kernel uses."""

from __future__ import annotations

from tc.base.frozen import frozen
from tc.base.grid import GridKernel
from tc.runtime.host.binary import Binary, KernelUse
from tc.runtime.loaded_kernel import Memory
from tc.targets.target import CudaTarget, Target


@frozen
class GridResources:
    """What one kernel of a GPU takes: blocks and threads along x, y and z, and what the assembler says of it.

    ``registers``: of a thread.  ``stack``, ``spill_stores``, ``spill_loads``: bytes of a thread's local memory.
    ``shared``: bytes of a block's shared memory.  ``occupancy``: the share of a multiprocessor's warps that blocks of
    this kernel can fill.
    """

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int
    occupancy: float


@frozen
class Resources:
    """What a kernel takes beyond its arguments and results, in bytes.

    ``temporaries``: memory that the threads of a call share; ``scratch``: memory of each thread, for packed operands.
    ``binary``: the compiled code.  ``grids``: what the kernels of a GPU take, in the order in which they run.
    """

    temporaries: int
    scratch: int
    binary: int
    grids: tuple[GridResources, ...] = ()


def resources_of(memory: Memory, grids: tuple[GridKernel, ...], binary: Binary, target: Target) -> Resources:
    """The resources of a kernel, those of its grids where its compiler tells them."""
    if not isinstance(target, CudaTarget):
        return Resources(memory.shared, memory.scratch, len(binary.code))
    found = tuple(_grid_resources(grid, binary.kernels[grid.name], target) for grid in grids)
    return Resources(memory.shared, memory.scratch, len(binary.code), found)


def _grid_resources(grid: GridKernel, use: KernelUse, target: CudaTarget) -> GridResources:
    shared = use.static_shared + grid.dynamic_bytes
    return GridResources(
        name=grid.name,
        grid=grid.grid,
        block=grid.block,
        registers=use.registers,
        stack=use.stack,
        spill_stores=use.spill_stores,
        spill_loads=use.spill_loads,
        shared=shared,
        occupancy=target.multiprocessor.occupancy(grid.threads, use.registers, shared),
    )
