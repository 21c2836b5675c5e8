"""Matrix instructions of four warps run while next tiles are copied: they are begun first, and awaited at a barrier.

A pipelined loop copies the tile of a later iteration, computes on its own, and ends with a barrier.  What it computes
does not depend on these copies; the proof shows that, of the loops as they are then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from tc.polyhedral.ir.loops import Allocation, Barrier, Block, Copy, GroupMma, Guard, Leaf, Loop, LoopTree, leaves


def overlapping(tree: LoopTree) -> LoopTree:
    """The loops in which instructions stand before asynchronous copies that come before the next barrier."""
    match tree:
        case Leaf():
            return tree
        case Block(children):
            return Block(_begun_first(tuple(map(overlapping, children))))
        case Guard(condition, then, otherwise):
            return Guard(condition, overlapping(then), None if otherwise is None else overlapping(otherwise))
        case Loop() | Allocation():
            return replace(tree, body=overlapping(tree.body))
        case _:
            assert_never(tree)


def _begun_first(children: tuple[LoopTree, ...]) -> tuple[LoopTree, ...]:
    for place in range(1, len(children) - 1):
        begun = _begun(children[place])
        if begun is None or not isinstance(children[place + 1], Barrier):
            continue
        first = place
        while first and _only_copies(children[first - 1]):
            first -= 1
        if first < place:
            return (*children[:first], begun, *children[first:place], *children[place + 1 :])
    return children


def _begun(tree: LoopTree) -> LoopTree | None:
    """Instructions that are not awaited where they stand; None for what is none."""
    match tree:
        case GroupMma():
            return replace(tree, awaited=False)
        case Guard(condition, then, None):
            inner = _begun(then)
            return None if inner is None else Guard(condition, inner, None)
        case Block((alone,)):
            return _begun(alone)
        case _:
            return None


def _only_copies(tree: LoopTree) -> bool:
    """Whether these are all asynchronous."""
    found = list(leaves(tree))
    return bool(found) and all(isinstance(leaf, Copy) and leaf.group is not None for leaf in found)
