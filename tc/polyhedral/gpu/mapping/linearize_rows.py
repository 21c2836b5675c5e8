"""Collapses contiguous dimensions into one loop, which the threads of a block share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.polyhedral.analysis.linearize import linearize_last
from tc.polyhedral.ir.scop import Scop, layouts_of
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.transform.tile import is_counted


def linearize_rows(
    tree: ScheduleTree, scop: Scop, kept: int, apart: Callable[[isl.UnionSet], bool] = lambda _: False
) -> ScheduleTree:
    """The tree with the innermost loops of every nest collapsed where all accesses are contiguous across them.

    Threads share collapsed loops evenly, however short the rows are.  ``kept``: the outermost loops of every path that
    are not collapsed, because they have explicit sizes.  ``apart``: says of which statements no loops are.
    """
    return replace(tree, root=_Visitor(scop, kept, apart).visit(tree.root, tree.domain, 0))


@frozen
class _Visitor:
    scop: Scop
    kept: int
    apart: Callable[[isl.UnionSet], bool]

    def visit(self, node: Node, domain: isl.UnionSet, depth: int) -> Node:
        match node:
            case Leaf():
                return node
            case Sequence(filters):
                branches = (replace(f, child=self.visit(f.child, domain.intersect(f.domain), depth)) for f in filters)
                return Sequence(tuple(branches))
            case Band(_, _, Leaf()) if self.apart(domain):
                return node
            case Band(members, _, Leaf()):
                statements = tuple(self.scop.statement(name) for name in statement_names(domain))
                kept = max(0, self.kept - depth) + sum(not is_counted(member) for member in members)
                return replace(node, members=linearize_last(members, statements, layouts_of(self.scop), kept))
            case Band(members, _, child):
                return replace(node, child=self.visit(child, domain, depth + sum(map(is_counted, members))))
            case Extension():
                raise AssertionError("buffers are placed in mapped trees, so this comes first")
            case _:
                assert_never(node)
