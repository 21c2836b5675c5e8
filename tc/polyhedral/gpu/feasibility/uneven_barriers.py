"""Divergent barriers: those in loops and branches that the threads of a block do not run alike."""

from __future__ import annotations

from typing import assert_never

from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import Allocation, Barrier, Loop, LoopKind, LoopTree, Matrices, variables


def has_uneven_barriers(root: LoopTree) -> bool:
    """Whether a loop or a guard around a barrier depends on the thread.

    All threads run the same barriers, which is proven, but a GPU asks for more: a warp must arrive at a barrier
    converged (PTX ISA, ``bar.sync`` is aligned), and OpenCL C wants the threads of a block to meet in each iteration of
    every loop around it (specification 3.0, 6.15.8), also where some go on without a barrier.
    """
    for leaf, path in loop_paths(root, ()):
        if not isinstance(leaf, Barrier):
            continue
        numbers: set[str] = set()
        for step in path:
            match step:
                case Loop(kind=LoopKind.THREAD, iterator=iterator):
                    numbers.add(iterator)
                case Loop(lower=lower, upper=upper):
                    if numbers & (variables(lower) | variables(upper)):
                        return True
                case (condition, _):
                    if numbers & variables(condition):
                        return True
                case int() | Allocation() | Matrices():
                    pass
                case _:
                    assert_never(step)
    return False
