"""Whether groups of four warps may multiply matrices together, and tiles may be as large as is best for them."""

from __future__ import annotations

import math

from tc.language.program.specialization import Specialization
from tc.language.program.terms import factors_of_instructions
from tc.polyhedral.gpu.tensor.warp_tiles import GROUP_TILES
from tc.targets.machine import GpuMachine
from tc.targets.options import GpuOptions, TensorCores


def has_groups(options: GpuOptions, machine: GpuMachine) -> bool:
    """Whether the machine has instructions for them, and they are wanted."""
    return machine.warpgroups and options.tensor_cores in (TensorCores.WARPGROUPS, TensorCores.STREAMS)


def has_large_product(specialization: Specialization, machine: GpuMachine) -> bool:
    """Whether a product of halves has as many of the largest tiles as keep a machine busy."""
    largest = GROUP_TILES[0]
    return any(
        math.prod(specialization.layouts[own.target].shape) >= machine.enough_blocks * largest.rows * largest.columns
        for own in specialization.program.statements
        if factors_of_instructions(own.value) is not None
    )
