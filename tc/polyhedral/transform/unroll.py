"""Full unrolling of short inner loops, bottom-up (paper, Section 6.2: a bound on the unrolled instances)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, assert_never

import islpy as isl

from tc.language.isl.pieces import sets_of
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence

# Who has which iterations of such a loop is no matter of the code of one.
_SHARED: Final = (LoopKind.PARALLEL, LoopKind.BLOCK, LoopKind.THREAD)
# Iterations of a loop that ends at an open size: each is inside of the guards of all before it.
_MOST_GUARDS: Final = 8


def unroll_tree(tree: ScheduleTree, limit: int) -> ScheduleTree:
    """Unroll loops from the leaves upwards while a body holds at most ``limit`` statement instances.

    Loops marked for lanes stay loops; the compiler decides their shape, or there is none.  So do those over cores,
    blocks and threads with all that are around them, and long ones that end at a size that stays open.
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
            if any(member.digit for member in members):
                return replace(node, child=below), limit + 1  # loops that become matrix instructions
            changed_members = list(members)
            for position in reversed(range(len(members))):
                member = members[position]
                if member.kind in (LoopKind.VECTOR, LoopKind.REDUCTION, LoopKind.LANES):
                    continue
                extent = extent_of(member.function, domain)
                count *= extent
                if count > limit or member.kind in _SHARED or _are_too_many_guards(member, domain, extent):
                    count = limit + 1
                    break
                changed_members[position] = replace(member, kind=LoopKind.FULLY_UNROLLED)
            return replace(node, members=tuple(changed_members), child=below), count
        case _:
            assert_never(node)


def _are_too_many_guards(member: Member, domain: isl.UnionSet, extent: int) -> bool:
    """Whether so many iterations would ask one after the other whether sizes that stay open are larger still."""
    if extent <= _MOST_GUARDS or domain.get_space().dim(isl.dim_type.param) == 0:
        return False
    counted = isl.UnionMap.from_union_pw_aff(member.function.intersect_domain(domain)).range()
    values = (own.gist_params(own.params()) for own in sets_of(counted))
    return any(own.involves_dims(isl.dim_type.param, 0, own.dim(isl.dim_type.param)) for own in values)
