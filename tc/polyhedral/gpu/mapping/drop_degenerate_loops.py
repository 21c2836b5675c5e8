"""Removes degenerate loops from the schedule: those with one iteration, and those equal to a loop around them.

Loops over tiles and points become degenerate once they are mapped to blocks and threads.  Code generation prints
nothing for them; but copies and barriers below them would depend on their values, and every proof would include them.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import TypeAlias, assert_never

import islpy as isl

from tc.language.isl.pieces import functions_of
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence

# The values of a loop, by statement.
_Values: TypeAlias = Mapping[str, isl.PwAff]


def drop_degenerate_loops(tree: ScheduleTree) -> ScheduleTree:
    """The tree without loops of one iteration, and without those that are equal to a loop around them."""
    return replace(tree, root=_visit(tree.root, tree.domain, ()))


def _visit(node: Node, domain: isl.UnionSet, above: tuple[_Values, ...]) -> Node:
    match node:
        case Leaf():
            return node
        case Sequence(filters):
            return Sequence(tuple(_branch(branch, domain.intersect(branch.domain), above) for branch in filters))
        case Band(members, _, child):
            kept: list[Member] = []
            for position, member in enumerate(members, 1):
                values = _values(member, domain)
                # What is copied for a tile lies between the innermost loop over tiles and a nest of its points; below
                # loops of rows, each thread has one point.
                points = _is_nest(child) or (isinstance(child, Leaf) and len(members) > 1)
                stays = points and position == len(members) and not kept
                if stays or member.kind.is_mapped or not _is_degenerate(member, values, domain, above):
                    kept.append(member)
                    above = (*above, values)
            below = _visit(child, domain, above)
            return replace(node, members=tuple(kept), child=below) if kept else below
        case Extension():
            raise AssertionError("buffers are placed in trees with the loops that remain")
        case _:
            assert_never(node)


def _is_nest(node: Node) -> bool:
    return isinstance(node, Band) and isinstance(node.child, Leaf)


def _branch(branch: Filter, domain: isl.UnionSet, above: tuple[_Values, ...]) -> Filter:
    return replace(branch, child=_visit(branch.child, domain, above))


def _is_degenerate(member: Member, values: _Values, domain: isl.UnionSet, above: Items[_Values]) -> bool:
    if extent_of(member.function, domain) == 1:
        return True
    return any(all(value.plain_is_equal(outer[name]) for name, value in values.items()) for outer in above)


def _values(member: Member, domain: isl.UnionSet) -> _Values:
    found = functions_of(member.function.intersect_domain(domain.universe()))
    return {str(value.get_tuple_id(isl.dim_type.in_).name): value for value in found}
