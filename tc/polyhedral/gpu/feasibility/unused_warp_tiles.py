"""Tiles that were made for matrix instructions, in loops that have none: other tiles do better then."""

from __future__ import annotations

from typing import assert_never

from tc.polyhedral.generate.obstacles import DivergentSteps, InBuffers, NoMatrices
from tc.polyhedral.ir.loops import LoopTree, Mma, leaves
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Node, ScheduleTree, Sequence


def unused_warp_tiles(tree: ScheduleTree, root: LoopTree | InBuffers | DivergentSteps | None) -> NoMatrices | None:
    """The obstacle if there are such tiles; ``root``: the loops of the tree, or why there are none."""
    if not _has_digits(tree.root):
        return None
    made = None if root is None or isinstance(root, InBuffers | DivergentSteps) else root
    return None if made is not None and any(isinstance(leaf, Mma) for leaf in leaves(made)) else NoMatrices()


def _has_digits(node: Node) -> bool:
    match node:
        case Leaf():
            return False
        case Band(members, _, child):
            return any(member.digit for member in members) or _has_digits(child)
        case Extension(child=child):
            return _has_digits(child)
        case Sequence(filters):
            return any(_has_digits(branch.child) for branch in filters)
        case _:
            assert_never(node)
