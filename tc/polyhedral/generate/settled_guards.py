"""Guards whose condition holds in every iteration around them are left out.

isl may let a loop over threads run further than to the last thread, and keeps the others from what is inside by a
guard.  The loop ends at the last thread where there are barriers (``tc.polyhedral.gpu.barriers.place_barriers``), so
that guard says nothing more; around a barrier, it would look as if some threads did not come.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, assert_never

from tc.polyhedral.analysis.ranges import Range, Ranges, iterator_range, range_of
from tc.polyhedral.ir.loops import Allocation, Block, Guard, Instance, Loop, LoopTree

_ALWAYS: Final = Range(1, 1)
_NEVER: Final = Range(0, 0)


def without_settled_guards(tree: LoopTree, ranges: Ranges) -> LoopTree:
    """The loops without the guards that constants settle; ``ranges``: of the sizes and iterators around."""
    match tree:
        case Instance():
            return tree
        case Block(children):
            return Block(tuple(without_settled_guards(child, ranges) for child in children))
        case Guard(condition, then, otherwise):
            values = range_of(condition, ranges)
            if values == _ALWAYS:
                return without_settled_guards(then, ranges)
            other = None if otherwise is None else without_settled_guards(otherwise, ranges)
            if values == _NEVER:
                return Block(()) if other is None else other
            return Guard(condition, without_settled_guards(then, ranges), other)
        case Allocation():
            return replace(tree, body=without_settled_guards(tree.body, ranges))
        case Loop():
            inner = {**ranges, tree.iterator: iterator_range(tree, ranges)}
            return replace(tree, body=without_settled_guards(tree.body, inner))
        case _:
            assert_never(tree)
