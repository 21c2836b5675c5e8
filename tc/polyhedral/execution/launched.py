"""Whether the launched blocks and threads run exactly the iterations of the loops over them."""

from __future__ import annotations

import islpy as isl

from tc.polyhedral.execution.barriers import Place
from tc.polyhedral.execution.launch_sizes import LaunchSizes
from tc.polyhedral.execution.launches import steps_above_nest
from tc.polyhedral.ir.loops import Loop, LoopKind

_ON_GRID = (LoopKind.BLOCK, LoopKind.THREAD)


def is_run_as_launched(place: Place, sizes: LaunchSizes) -> bool:
    """Whether the iterations of the loops around a place are those that the hardware runs, and once each.

    A launch is all that an outermost nest does, so nothing around its loops over blocks and threads may repeat them, or
    stand beside them.  Blocks are not in order, so all loops over them come first.  There must be as many loops as the
    launch has dimensions, because all that the hardware has along others would run the place; and they begin at 0,
    because it counts from there.  ``sizes``: of the launch, which may be made for each iteration of loops around it.
    """
    # What is guarded still runs where it would: guards around all loops ask for open sizes.
    outermost = steps_above_nest(place.path)
    path = tuple(step for step in place.path[outermost:] if isinstance(step, int | Loop))
    kinds = [step.kind for step in path if isinstance(step, Loop) and step.kind in _ON_GRID]
    blocks = kinds.count(LoopKind.BLOCK)
    if any(size > 1 for size in (*sizes.grid[blocks:], *sizes.block[len(kinds) - blocks :])):
        return False
    if not kinds:
        return True
    outer = LoopKind.BLOCK if blocks else LoopKind.THREAD
    if not all(isinstance(step, Loop) and step.kind is outer for step in path[: max(blocks, 1)]):
        return False
    return all(
        place.points.upper_bound_val(isl.dim_type.set, position, isl.Val.negone(place.points.get_ctx())).is_empty()
        for position, loop in enumerate(step for step in place.path if isinstance(step, Loop))
        if loop.kind in _ON_GRID
    )
