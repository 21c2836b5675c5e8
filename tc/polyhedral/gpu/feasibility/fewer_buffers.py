"""Options with fewer buffers, for proven loops that a GPU cannot run, or only badly."""

from __future__ import annotations

from dataclasses import replace

from tc.base.errors import CompileError
from tc.polyhedral.gpu.feasibility.missing_copies import has_missing_copies
from tc.polyhedral.gpu.feasibility.register_arrays import has_moving_arrays
from tc.polyhedral.gpu.feasibility.uneven_barriers import has_uneven_barriers
from tc.polyhedral.ir.loops import LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.targets.options import GpuOptions


def fewer_buffers(root: LoopTree, scop: Scop, options: GpuOptions, name: str) -> GpuOptions | None:
    """What to try in the place of these options; None if all is well.

    An array that no register can hold gains nothing, around some barriers threads do not meet, and some copies are not
    among the loops.  ``name``: of the program.  CompileError where threads still do not meet without any shared memory.
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
