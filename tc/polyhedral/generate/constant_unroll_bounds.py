"""Constant bounds for loops that will be unrolled.

A loop whose bounds depend on the loops around it gets the least and the greatest bound of all their iterations, and
guards around its body exclude the added iterations.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import assert_never

from tc.polyhedral.analysis.ranges import Ranges, iterator_range
from tc.polyhedral.generate.constant_trip_counts import between
from tc.polyhedral.ir.loops import Allocation, Block, Guard, IndexLiteral, Leaf, Loop, LoopKind, LoopTree


def constant_unroll_bounds(root: LoopTree, ranges: Ranges, most: int) -> LoopTree:
    """The tree with constant bounds for the loops that are to be unrolled.

    ``ranges``: of open sizes.  A loop without constant bounds, or with more than ``most`` iterations between them,
    becomes sequential.
    """
    match root:
        case Leaf():
            return root
        case Block(children):
            return Block(tuple(constant_unroll_bounds(child, ranges, most) for child in children))
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else constant_unroll_bounds(otherwise, ranges, most)
            return Guard(condition, constant_unroll_bounds(then, ranges, most), other)
        case Allocation():
            return replace(root, body=constant_unroll_bounds(root.body, ranges, most))
        case Loop():
            inner = {**ranges, root.iterator: iterator_range(root, ranges)}
            loop = replace(root, body=constant_unroll_bounds(root.body, inner, most))
            return _fixed(loop, ranges, most) if loop.kind is LoopKind.FULLY_UNROLLED else loop
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
