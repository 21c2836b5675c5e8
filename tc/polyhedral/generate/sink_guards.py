"""Moves guards around barriers between them, for machines whose threads may not wait for each other in a branch.

Such guards ask which blocks have something to do, where sizes stay open: the others go through all barriers, and do
nothing between them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import assert_never

from tc.polyhedral.analysis.ranges import Ranges, iterator_range, range_of
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Leaf,
    Loop,
    LoopTree,
    barriers,
)


def sink_guards(root: LoopTree, ranges: Ranges) -> LoopTree:
    """The loops without barriers in branches of guards that have one branch; ``ranges``: of open sizes."""
    return _without(root, None, ranges)


def _without(tree: LoopTree, condition: IndexExpression | None, ranges: Ranges) -> LoopTree:
    """A tree that runs where a condition holds."""
    if not barriers(tree):
        return tree if condition is None else Guard(condition, tree, None)
    match tree:
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(_without(child, condition, ranges) for child in children))
        case Guard(inner, then, None):
            return _without(then, _both(condition, inner), ranges)
        case Guard():
            return tree if condition is None else Guard(condition, tree, None)
        case Loop():
            return _loop(tree, condition, ranges)
        case Allocation():
            return replace(tree, body=_without(tree.body, condition, ranges))
        case _:
            assert_never(tree)


def _loop(loop: Loop, condition: IndexExpression | None, ranges: Ranges) -> Loop:
    """The loop; where as many blocks or threads run as there are at most, with a guard for those beyond its end."""
    most = range_of(loop.upper, ranges).most
    if loop.kind.is_mapped and not isinstance(loop.upper, IndexLiteral) and not math.isinf(most):
        inside = IndexOperation(IndexOperator.LESS_EQUAL, (IndexVariable(loop.iterator), loop.upper))
        loop, condition = replace(loop, upper=IndexLiteral(int(most))), _both(condition, inside)
    inner = {**ranges, loop.iterator: iterator_range(loop, ranges)}
    return replace(loop, body=_without(loop.body, condition, inner))


def _both(condition: IndexExpression | None, other: IndexExpression) -> IndexExpression:
    return other if condition is None else IndexOperation(IndexOperator.AND, (condition, other))
