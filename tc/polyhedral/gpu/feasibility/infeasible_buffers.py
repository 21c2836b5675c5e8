"""What keeps a GPU from running proven loops with the buffers that they have, or from running them well."""

from __future__ import annotations

from tc.base.errors import CompileError
from tc.polyhedral.generate.missing_instances import has_missing_copies
from tc.polyhedral.generate.obstacles import DivergentSteps, InBuffers
from tc.polyhedral.gpu.feasibility.register_arrays import has_moving_arrays
from tc.polyhedral.gpu.feasibility.uneven_barriers import has_uneven_barriers
from tc.polyhedral.ir.loops import LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.targets.options import GpuOptions


def infeasible_buffers(root: LoopTree, scop: Scop, options: GpuOptions, name: str) -> InBuffers | DivergentSteps | None:
    """What is wrong with loops that buffers were made for with these options; None if they are feasible.

    ``name``: of the program.  CompileError where a barrier is divergent although there are neither shared memory nor
    scans.
    """
    if (options.register_operands or options.register_accumulators) and has_moving_arrays(root, scop):
        return InBuffers.MOVING_ARRAYS
    uneven = has_uneven_barriers(root)
    if options.shared_memory and uneven:
        return InBuffers.DIVERGENT_BARRIERS
    if options.shared_memory and has_missing_copies(root, scop):
        return InBuffers.MISSING_COPIES
    if not uneven:
        return None
    if options.schedule.scans:
        return DivergentSteps()
    raise CompileError(
        f"{name}: threads of a block go through a loop around a barrier unequally often, which GPUs do not allow; "
        "choose other tiles or another grid"
    )
