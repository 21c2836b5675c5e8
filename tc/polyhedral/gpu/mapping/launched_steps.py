"""Steps that wait for each other: inside of one block, or each launched on its own, with all blocks of a grid.

A barrier between the threads of a block takes less time than a launch, but one block has one multiprocessor.
"""

from __future__ import annotations

from typing import Final

import islpy as isl

from tc.base.grid import MOST_LAUNCHES
from tc.polyhedral.analysis.extents import extent_of, volume
from tc.polyhedral.ir.tree import Band
from tc.polyhedral.transform.share_loops import inner_loops

# Iterations of one thread that take about as long as a launch.
LAUNCH_ITERATIONS: Final = 64


def are_worth_launches(band: Band, domain: isl.UnionSet, block_threads: int) -> bool:
    """Whether the outermost loop is steps, each of which keeps one block busy for longer than a launch takes.

    Its iterations wait for each other, no loop beside it can be shared by blocks, and loops inside can.
    """
    steps, *others = [extent_of(member.function, domain) for member in band.members]
    if band.members[0].coincident or steps < 2 or steps > MOST_LAUNCHES or any(extent > 1 for extent in others):
        return False
    if domain.params().dim(isl.dim_type.param) or not inner_loops(band.child, domain):
        return False
    return volume(domain) > steps * LAUNCH_ITERATIONS * block_threads
