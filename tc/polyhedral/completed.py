"""The loops of a grid that are printed: as they are proven, but with whole tiles at the borders of results."""

from __future__ import annotations

from tc.polyhedral.grid_passes import COMPLETING_PASSES, LAST_GRID_LOOP_PASSES
from tc.polyhedral.ir.loops import LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.passes import Passes, run_passes
from tc.targets.machine import GpuMachine
from tc.targets.options import GpuOptions


def completed(root: LoopTree, proven: LoopTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> LoopTree:
    """What is printed in place of ``proven``, which ``LAST_GRID_LOOP_PASSES`` made of ``root``."""

    def last(passes: Passes[LoopTree, GpuOptions, GpuMachine], tree: LoopTree) -> LoopTree:
        *_, (_, made, _) = run_passes(passes, tree, scop, options, machine)
        return made

    whole = last(COMPLETING_PASSES, root)
    return proven if whole == root else last(LAST_GRID_LOOP_PASSES, whole)
