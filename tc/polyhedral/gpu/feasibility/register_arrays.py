"""Whether private arrays can lie in registers: their subscripts must be constants once loops are unrolled."""

from __future__ import annotations

from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.generate.constant_trip_counts import own_subscripts
from tc.polyhedral.ir.loops import MOST_UNROLLED, Barrier, IndexLiteral, Loop, LoopKind, LoopTree, variables
from tc.polyhedral.ir.scop import Scop


def has_moving_arrays(root: LoopTree, scop: Scop) -> bool:
    """Whether some subscript of a private array is no constant once loops are unrolled (``constant_trip_counts``)."""
    for instance, path in loop_paths(root, ()):
        if isinstance(instance, Barrier):
            continue
        unrolled = {step.iterator for step in path if isinstance(step, Loop) and _is_unrolled(step)}
        if any(own.in_array and not variables(own.value) <= unrolled for own in own_subscripts(instance, scop)):
            return True
    return False


def _is_unrolled(loop: Loop) -> bool:
    if loop.kind is LoopKind.FULLY_UNROLLED:
        return True
    if loop.kind not in (LoopKind.UNROLLED, LoopKind.REDUCTION):
        return False
    match loop.lower, loop.upper:
        case IndexLiteral(first), IndexLiteral(last):
            return (last - first) // loop.step < MOST_UNROLLED
        case _:
            return False
