"""Guards with a constant condition are folded, and parts of conditions that always hold are left out.

isl may generate a loop over more threads than the block has, with a guard inside that excludes the others.  Where there
are barriers, the loop is cut to the threads of the block (``tc.polyhedral.gpu.barriers.place_barriers``), and the guard
always holds; left around a barrier, it would make the barrier look divergent.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Final, assert_never

from tc.polyhedral.analysis.ranges import Range, Ranges, iterator_range, range_of
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexOperation,
    IndexOperator,
    Leaf,
    Loop,
    LoopTree,
    conjuncts,
)

_ALWAYS: Final = Range(1, 1)
_NEVER: Final = Range(0, 0)


def without_constant_guards(tree: LoopTree, ranges: Ranges) -> LoopTree:
    """The tree without guards whose condition is constant; ``ranges``: of the sizes and iterators around."""
    match tree:
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(own for c in children if (own := without_constant_guards(c, ranges)) != Block(())))
        case Guard(condition, then, otherwise):
            left = [own for own in conjuncts(condition) if range_of(own, ranges) != _ALWAYS]
            if not left:
                return without_constant_guards(then, ranges)
            other = None if otherwise is None else without_constant_guards(otherwise, ranges)
            if any(range_of(own, ranges) == _NEVER for own in left):
                return Block(()) if other is None else other
            condition = reduce(lambda first, second: IndexOperation(IndexOperator.AND, (first, second)), left)
            return Guard(condition, without_constant_guards(then, ranges), other)
        case Allocation():
            return replace(tree, body=without_constant_guards(tree.body, ranges))
        case Loop():
            inner = {**ranges, tree.iterator: iterator_range(tree, ranges)}
            return replace(tree, body=without_constant_guards(tree.body, inner))
        case _:
            assert_never(tree)
