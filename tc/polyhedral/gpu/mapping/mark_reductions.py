"""Marks loops in which a thread reduces into one element, whose result stays in a register until the loop ends."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.transform.vectorize import ends_nest


def mark_reductions(tree: ScheduleTree, scop: Scop) -> ScheduleTree:
    """The tree with the innermost loop of every reduction marked, where nothing else is inside of it.

    A loop over the steps of a block is none, whatever is reduced in each of them: its band is not permutable.
    """
    return replace(tree, root=_marked(tree.root, tree.domain, scop))


def _marked(node: Node, domain: isl.UnionSet, scop: Scop) -> Node:
    match node:
        case Leaf():
            return node
        case Sequence(filters):
            branches = (replace(f, child=_marked(f.child, domain.intersect(f.domain), scop)) for f in filters)
            return Sequence(tuple(branches))
        case Band(members, permutable, child) if ends_nest(child):
            last = members[-1]
            if (
                last.coincident
                or not permutable
                or not all(scop.statement(name).accumulates for name in statement_names(domain))
            ):
                return node
            return replace(node, members=(*members[:-1], replace(last, kind=LoopKind.REDUCTION)))
        case Band(child=child):
            return replace(node, child=_marked(child, domain, scop))
        case Extension():
            raise AssertionError("buffers are placed later")
        case _:
            assert_never(node)
