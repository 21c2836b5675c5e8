"""Full unrolling of short inner loops, bottom-up (paper, Section 6.2: a bound on the unrolled instances)."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.polyhedral.extents import extent_of
from tc.polyhedral.loops import LoopKind
from tc.polyhedral.tree import Band, Extension, Leaf, Node, ScheduleTree, Sequence


def unroll_tree(tree: ScheduleTree, limit: int) -> ScheduleTree:
    """Unroll loops from the leaves upwards while a body holds at most ``limit`` statement instances.

    Loops marked for lanes stay loops; the compiler decides their shape, or there is none.
    """
    if limit <= 1:
        return tree
    root, _ = _visit(tree.root, tree.domain, limit)
    return replace(tree, root=root)


def _visit(node: Node, domain: isl.UnionSet, limit: int) -> tuple[Node, int]:
    """The changed subtree and the number of instances in its unrolled body; more than ``limit`` stops it."""
    match node:
        case Leaf():
            return node, 1
        case Extension(instances=instances, child=child):
            below, _ = _visit(child, domain.union(instances.range()), limit)
            # One allocation stands for the iterations of the loops around it, which therefore stay loops.
            return replace(node, child=below), limit + 1
        case Sequence(filters):
            visited = [_visit(f.child, domain.intersect(f.domain), limit) for f in filters]
            changed = tuple(replace(f, child=child) for f, (child, _) in zip(filters, visited, strict=True))
            return Sequence(changed), sum(count for _, count in visited)
        case Band(members, _, child):
            below, count = _visit(child, domain, limit)
            changed_members = list(members)
            for position in reversed(range(len(members))):
                member = members[position]
                if member.kind in (LoopKind.VECTOR, LoopKind.REDUCTION, LoopKind.LANES):
                    continue
                extent = extent_of(member.function, domain)
                count *= extent
                if count > limit or member.kind is LoopKind.PARALLEL:
                    count = limit + 1
                    break
                changed_members[position] = replace(member, kind=LoopKind.UNROLLED)
            return replace(node, members=tuple(changed_members), child=below), count
        case _:
            assert_never(node)
