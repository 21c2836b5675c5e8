"""Whether groups of four warps may multiply matrices together, and tiles may be as large as is best for warps."""

from __future__ import annotations

import math

from tc.language.program.specialization import Specialization
from tc.language.program.terms import factors_of_instructions
from tc.polyhedral.gpu.tensor.tile_shapes import GROUP_TILES, WIDE_BLOCKS, WIDE_BYTES, WIDE_TILE, WarpTile
from tc.targets.machine import GpuMachine
from tc.targets.options import GpuOptions, TensorCores


def has_groups(options: GpuOptions, machine: GpuMachine) -> bool:
    """Whether the machine has instructions for them, and they are wanted."""
    return machine.warpgroups and options.tensor_cores in (TensorCores.WARPGROUPS, TensorCores.STREAMS)


def has_large_product(specialization: Specialization, machine: GpuMachine) -> bool:
    """Whether a product of halves has as many of the largest tiles as keep a machine busy."""
    return _has_tiles(specialization, GROUP_TILES[0], machine.enough_blocks)


def has_wide_product(specialization: Specialization, machine: GpuMachine) -> bool:
    """Whether one has so many of the widest tiles of single warps, for which a block of the machine has room."""
    wide = _has_tiles(specialization, WIDE_TILE, WIDE_BLOCKS * machine.enough_blocks)
    return wide and machine.most_shared >= WIDE_BYTES


def _has_tiles(specialization: Specialization, tile: WarpTile, count: int) -> bool:
    return any(
        math.prod(specialization.layouts[own.target].shape) >= count * tile.points
        for own in specialization.program.statements
        if factors_of_instructions(own.value) is not None
    )
