"""Options with fewer buffers, for proven loops that a GPU cannot run, or only badly."""

from __future__ import annotations

from dataclasses import replace

from tc.base.errors import CompileError
from tc.polyhedral.generate.missing_instances import has_missing_copies
from tc.polyhedral.gpu.feasibility.register_arrays import has_moving_arrays
from tc.polyhedral.gpu.feasibility.uneven_barriers import has_uneven_barriers
from tc.polyhedral.ir.loops import LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.targets.options import GpuOptions


def fewer_buffers(root: LoopTree, scop: Scop, options: GpuOptions, name: str) -> GpuOptions | None:
    """Options to try instead of these; None if the loops are feasible.

    They have fewer buffers where an array cannot lie in registers, a barrier is divergent, or isl dropped copies.
    ``name``: of the program.  CompileError where a barrier is divergent although there is no shared memory.
    """
    if (options.fragments or options.private) and has_moving_arrays(root, scop):
        return replace(options, fragments=0) if options.fragments else replace(options, private=0)
    uneven = has_uneven_barriers(root, scop.barrier_names)
    if options.shared and (uneven or has_missing_copies(root, scop)):
        return replace(options, shared=0)
    if not uneven:
        return None
    raise CompileError(
        f"{name}: threads of a block go through a loop around a barrier unequally often, which GPUs do not allow; "
        "choose other tiles or another grid"
    )
