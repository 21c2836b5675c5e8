"""Tiles that were made for matrix instructions, in loops that have none: other tiles do better then."""

from __future__ import annotations

from typing import assert_never

from tc.polyhedral.generate.obstacles import DivergentSteps, InBuffers, NoChain, NoGroups, NoMatrices
from tc.polyhedral.ir.chained import Chain, Part
from tc.polyhedral.ir.loops import GroupMma, LoopTree, Matrices, Scheduled, leaves
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Node, ScheduleTree, Sequence, statement_names


def unused_warp_tiles(
    tree: ScheduleTree, scop: Scop, root: LoopTree | InBuffers | DivergentSteps | None
) -> NoChain | NoMatrices | NoGroups | None:
    """The obstacle if there are such tiles; ``root``: the loops of the tree, or why there are none.

    Where operands lie as groups of warps read them, it is for these that tiles were made.
    """
    if scop.chain is not None and not _is_one_kernel(tree, scop.chain):
        return NoChain()
    if not _has_digits(tree.root):
        return None
    made = None if root is None or isinstance(root, InBuffers | DivergentSteps) else root
    if made is not None and scop.chain is not None and not _has_products(made, scop.chain):
        return NoChain()
    if any(promotion.buffer.swizzle for promotion in scop.promotions):
        grouped = made is not None and any(isinstance(leaf, GroupMma) for leaf in leaves(made))
        return None if grouped else NoGroups()
    return None if made is not None and any(isinstance(leaf, Matrices) for leaf in leaves(made)) else NoMatrices()


def _is_one_kernel(tree: ScheduleTree, chain: Chain) -> bool:
    """Whether all statements of a chain are in one nest."""
    nests = tree.root.filters if isinstance(tree.root, Sequence) else ()
    every = [branch.domain.intersect(tree.domain) for branch in nests] or [tree.domain]
    return any({own.statement for own in chain.links} <= set(statement_names(domain)) for domain in every)


def _has_products(root: LoopTree, chain: Chain) -> bool:
    """Whether matrix instructions are all that runs the products of a chain."""
    products = {link.statement for link in chain.links if link.part in (Part.SCORES, Part.SUMS)}
    alone = {leaf.statement for leaf in leaves(root) if isinstance(leaf, Scheduled)}
    return not products & alone


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
