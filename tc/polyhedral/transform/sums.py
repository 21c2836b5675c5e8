"""Loops over sums of iterators, ``2*i + 4*j``, of which isl's AST generator makes wrong ones when they are divided.

With a quotient or a remainder of such a sum outside, it often drops iterations of the loops inside over what is added
up (``tc.polyhedral.generate.missing_instances``).  So these loops count from 0 where threads share all that they count,
which takes no remainder; and where isl is wrong all the same, they are not divided at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.language.isl.pieces import functions_of, pieces_of
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence


def divided_sums(tree: ScheduleTree) -> frozenset[str]:
    """The statements in a loop over a quotient or a remainder of a sum of iterators."""
    return frozenset(
        str(piece.get_tuple_id(isl.dim_type.in_).name)
        for member in _members(tree.root)
        for piece in _pieces(member)
        if _is_sum(piece) and any(part.dim(isl.dim_type.div) for part in _parts(piece))
    )


def keep_sums_whole(tree: ScheduleTree) -> ScheduleTree:
    """The tree in which iterations of loops over sums of iterators run in order, so that none of them is divided."""
    return replace(tree, root=_kept(tree.root))


def counts_sum(member: Member) -> bool:
    """Whether the loop counts a sum of iterators, for some statement."""
    return any(map(_is_sum, _pieces(member)))


def sums_from_zero(member: Member, domain: isl.UnionSet) -> Member:
    """The member as it is, but counting from 0 on the domain where it counts a sum of iterators."""
    if not counts_sum(member):
        return member
    function = member.function
    first = isl.UnionPwAff.val_on_domain(function.domain(), function.intersect_domain(domain).floor().min_val())
    return replace(member, function=function.sub(first))


def _kept(node: Node) -> Node:
    match node:
        case Leaf():
            return node
        case Band(members, _, child):
            kept = (replace(m, coincident=m.coincident and not counts_sum(m)) for m in members)
            return replace(node, members=tuple(kept), child=_kept(child))
        case Sequence(filters):
            return Sequence(tuple(replace(branch, child=_kept(branch.child)) for branch in filters))
        case Extension(child=child):
            return replace(node, child=_kept(child))
        case _:
            assert_never(node)


def _members(node: Node) -> Iterator[Member]:
    match node:
        case Leaf():
            return
        case Band(members, _, child):
            yield from members
            yield from _members(child)
        case Sequence(filters):
            for branch in filters:
                yield from _members(branch.child)
        case Extension(child=child):
            yield from _members(child)
        case _:
            assert_never(node)


def _pieces(member: Member) -> list[isl.PwAff]:
    """What the loop counts, for each statement."""
    return functions_of(member.function)


def _is_sum(piece: isl.PwAff) -> bool:
    count = piece.dim(isl.dim_type.in_)
    return sum(piece.involves_dims(isl.dim_type.in_, position, 1) for position in range(count)) > 1


def _parts(piece: isl.PwAff) -> list[isl.Aff]:
    return [part for _, part in pieces_of(piece)]
