"""Loops that will be unrolled get bounds that are numbers.

Where such a loop begins later or ends earlier in some iterations of the loops around it, it goes from the first to the
last iteration of any, and guards say where it does nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import assert_never

from tc.polyhedral.analysis.ranges import Ranges, iterator_range
from tc.polyhedral.generate.fix_counts import between
from tc.polyhedral.ir.loops import Allocation, Block, Guard, IndexLiteral, Instance, Loop, LoopKind, LoopTree


def fix_copied(root: LoopTree, ranges: Ranges, most: int) -> LoopTree:
    """The loops with numbers as bounds of those that are unrolled.

    ``ranges``: of open sizes.  Those stay loops of which constants do not tell where they begin and end, or only that
    it is in more than ``most`` iterations.
    """
    match root:
        case Instance():
            return root
        case Block(children):
            return Block(tuple(fix_copied(child, ranges, most) for child in children))
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else fix_copied(otherwise, ranges, most)
            return Guard(condition, fix_copied(then, ranges, most), other)
        case Allocation():
            return replace(root, body=fix_copied(root.body, ranges, most))
        case Loop():
            inner = {**ranges, root.iterator: iterator_range(root, ranges)}
            loop = replace(root, body=fix_copied(root.body, inner, most))
            return _fixed(loop, ranges, most) if loop.kind is LoopKind.COPIED else loop
        case _:
            assert_never(root)


def _fixed(loop: Loop, ranges: Ranges, most: int) -> Loop:
    values = iterator_range(loop, ranges)
    extent = values.most - values.least
    # Steps are counted from where the loop begins.
    known = loop.step == 1 or isinstance(loop.lower, IndexLiteral)
    if not known or math.isinf(extent) or math.isnan(extent) or extent // loop.step >= most:
        return replace(loop, kind=LoopKind.SEQUENTIAL)
    return between(loop, int(values.least), int(values.most))
