"""Refuses sizes in the options that no loop of the kernel uses."""

from __future__ import annotations

from tc.base.counted import counted
from tc.base.errors import OptionsError
from tc.polyhedral.analysis.paths import paths_below
from tc.polyhedral.cpu.register_tile import independent_iterators
from tc.polyhedral.ir.scop import Scop, layouts_of
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.transform.tile import OUTERMOST_FIRST, is_counted
from tc.targets.options import CpuOptions, Options


def refuse_surplus_sizes(tree: ScheduleTree, scop: Scop, options: Options) -> None:
    """OptionsError where there are more sizes of tiles or register tiles than loops in the schedule."""
    depth = max((sum(map(is_counted, members)) for _, members in paths_below(tree.root, tree.domain)), default=0)
    tile = options.schedule.tile or ()
    if len(tile) > depth:
        raise OptionsError(
            f"tile has {counted(len(tile), 'size')}, but loops are nested {depth} deep at most; leave out the last "
            f"ones ({OUTERMOST_FIRST})"
        )
    if not isinstance(options, CpuOptions):
        return
    layouts = layouts_of(scop)
    reductions = [statement for statement in scop.statements if statement.accumulates]
    most = max((len(independent_iterators(statement, layouts)) for statement in reductions), default=0)
    register_tile = options.register_tile or ()
    if len(register_tile) > most:
        raise OptionsError(
            f"register_tile has {counted(len(register_tile), 'size')}, but the target of a reduction has "
            f"{counted(most, 'loop')} at most; leave out the first ones"
        )
