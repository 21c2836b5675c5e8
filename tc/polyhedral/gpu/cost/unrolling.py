"""How many iterations of a loop stand in the machine code one after the other."""

from __future__ import annotations

from typing import Final, assert_never

import numpy as np

from tc.codegen.printer.loop_pragmas import repetitions
from tc.polyhedral.analysis.offsets import index_form
from tc.polyhedral.analysis.ranges import Range, Ranges
from tc.polyhedral.gpu.cost.lane_values import Values
from tc.polyhedral.ir.loops import (
    MOST_UNROLLED,
    Allocation,
    Barrier,
    Block,
    Guard,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    leaves,
)

# Loops so short the compiler unrolls without being asked.
_SHORT: Final = 8
# Others without barriers, so often; and inner loops of so many iterations are taken apart then.
_USUAL: Final = 4
_INNER: Final = 16
# Elements of the arrays in which copies for all threads are evaluated.
_MOST_ELEMENTS: Final = 1 << 20
_UNROLLED: Final = (
    LoopKind.UNROLLED,
    LoopKind.REDUCTION,
    LoopKind.FULLY_UNROLLED,
    LoopKind.REGISTER,
    LoopKind.VECTOR,
)


def copies_of(loop: Loop, trips: int, values: Values, elements: int) -> int:
    """The unroll factor of a loop with so many iterations; ``elements``: threads times copies around."""
    if not _is_straight(loop.body):
        return 1
    most = max(1, _MOST_ELEMENTS // max(elements, 1))
    if loop.kind in _UNROLLED:
        return min(trips, MOST_UNROLLED, most)
    if loop.kind is LoopKind.SEQUENTIAL and trips <= _SHORT and not _branches(loop.body):
        return min(trips, most)
    if loop.kind is LoopKind.SEQUENTIAL:
        usual = 1 if _branches(loop.body) else _USUAL
        return min(max(usual, repetitions(loop, _ranges(values))), trips, most)
    return 1


def _ranges(values: Values) -> Ranges:
    return {name: Range(int(np.min(own)), int(np.max(own))) for name, own in values.items()}


def holds_barrier(tree: LoopTree) -> bool:
    """Whether threads wait for each other inside."""
    return any(isinstance(leaf, Barrier) for leaf in leaves(tree))


def depth_of(tree: LoopTree) -> int:
    """How many loops that are not unrolled stand one in the other."""
    match tree:
        case Leaf():
            return 0
        case Block(children):
            return max(map(depth_of, children), default=0)
        case Guard(_, then, otherwise):
            return max(depth_of(then), 0 if otherwise is None else depth_of(otherwise))
        case Loop(kind=LoopKind.SEQUENTIAL):
            return 1 + depth_of(tree.body)
        case Loop() | Allocation():
            return depth_of(tree.body)
        case _:
            assert_never(tree)


def _is_straight(tree: LoopTree) -> bool:
    """Whether no loop inside has to stay one, and no thread waits."""
    match tree:
        case Barrier():
            return False
        case Leaf():
            return True
        case Block(children):
            return all(map(_is_straight, children))
        case Guard(_, then, otherwise):
            return _is_straight(then) and (otherwise is None or _is_straight(otherwise))
        case Allocation(_, body):
            return _is_straight(body)
        case Loop(kind=LoopKind.LANES):
            return False
        case Loop(kind=LoopKind.SEQUENTIAL):
            length = index_form(tree.upper).plus(index_form(tree.lower), -1)
            return not length.factors and length.constant < _INNER * tree.step and _is_straight(tree.body)
        case Loop():
            return _is_straight(tree.body)
        case _:
            assert_never(tree)


def _branches(tree: LoopTree) -> bool:
    """Whether anything inside is guarded."""
    match tree:
        case Guard():
            return True
        case Leaf():
            return False
        case Block(children):
            return any(map(_branches, children))
        case Allocation() | Loop():
            return _branches(tree.body)
        case _:
            assert_never(tree)
