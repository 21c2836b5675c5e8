"""Marks the loops of a schedule over the partial results of blocks (split-K)."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.polyhedral.analysis.strides import iterator_of
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence, statement_names


def mark_split_loops(tree: ScheduleTree, scop: Scop) -> ScheduleTree:
    """The tree with ``split`` on the members that are loops over what ``across`` makes of a reduction."""
    if not scop.shared_parts:
        return tree
    return replace(tree, root=_marked(tree.root, tree.domain, scop))


def _marked(node: Node, domain: isl.UnionSet, scop: Scop) -> Node:
    match node:
        case Leaf():
            return node
        case Sequence(filters):
            return Sequence(
                tuple(replace(f, child=_marked(f.child, domain.intersect(f.domain), scop)) for f in filters)
            )
        case Band(members, _, child):
            changed = tuple(replace(m, split=True) if _counts_parts(m, domain, scop) else m for m in members)
            return replace(node, members=changed, child=_marked(child, domain, scop))
        case Extension():
            raise AssertionError("buffers are placed in trees whose loops are marked")
        case _:
            assert_never(node)


def _counts_parts(member: Member, domain: isl.UnionSet, scop: Scop) -> bool:
    return any(
        iterator_of(member.function, scop.statement(name).body) == scop.shared_parts[name]
        for name in statement_names(domain)
        if name in scop.shared_parts
    )
