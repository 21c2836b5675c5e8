"""Which sums cannot be cut into blocks, read off the tree: before isl generates loops that would not be taken.

A loop can keep a sum beside if it comes to one element of it only (``tc.polyhedral.generate.block_sums``).  So where a
target has no buffer of its own, the partial sum goes to memory once for each value of the members down to the last
one that moves from one element to another.  Of one element these values are counted here.  What is found is certain;
what is not found, and all with open sizes, the loops themselves show.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import islpy as isl

from tc.base.types import ScalarType
from tc.language.program.program import Reduction
from tc.polyhedral.analysis.box import prefix_map
from tc.polyhedral.generate.serial_chains import most_additions, most_rounded
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop, ScopStatement
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence, statement_names


def long_sums(tree: ScheduleTree, scop: Scop) -> frozenset[str]:
    """Statements that add up so much in float32 in memory that they must do it in float64.

    ``tree``: all passes were run that make buffers for results, and that order loops.
    """
    if scop.sizes:
        return frozenset()
    types = {buffer.name: buffer.layout.type for buffer in (*scop.buffers, *scop.temporaries)}
    return frozenset(
        statement.name
        for statement in scop.statements
        if statement.body.reduction is Reduction.ADD
        and types.get(statement.body.target) is ScalarType.FLOAT32
        and _comes_back(statement, list(_members_above(tree.root, statement.name)))
    )


def _members_above(node: Node, statement: str) -> Iterator[Member]:
    match node:
        case Leaf():
            return
        case Band(members, _, child):
            yield from members
            yield from _members_above(child, statement)
        case Extension(child=child):
            yield from _members_above(child, statement)
        case Sequence(filters):
            for branch in filters:
                if statement in statement_names(branch.domain):
                    yield from _members_above(branch.child, statement)
        case _:
            assert_never(node)


def _comes_back(statement: ScopStatement, members: list[Member]) -> bool:
    """Whether too many partial sums of the first element go to memory, one after the other."""
    terms = statement.body.terms
    if any(member.kind is LoopKind.LANES for member in members):
        return False
    if terms is not None and terms <= most_additions(statement.body):
        return False
    (write,) = statement.writes
    own = write.intersect_range(write.range().lexmin()).domain()
    first = own.lexmin()
    for step in range(statement.body.begun):  # each of which begins another sum
        own = own.fix_val(isl.dim_type.set, step, first.dim_min_val(step))
    if not _has_more(own, most_additions(statement.body)):
        return False
    others = statement.domain.subtract(own)
    for moving in reversed(range(len(members))):
        before = prefix_map(statement.domain, members[:moving])
        met = own.apply(before).intersect(others.apply(before))
        if not met.is_empty():
            inside = own.intersect(met.apply(before.reverse()))
            partial = inside.apply(prefix_map(statement.domain, members[: moving + 1]))
            return _has_more(partial, most_rounded(statement.body))
    return False


def _has_more(points: isl.Set, count: int) -> bool:
    """Whether there are more points; False also where that shows only among too many of them to be counted."""
    room = 2 * (count + 1)
    for dimension in range(points.dim(isl.dim_type.set)):
        least, most = (int(end.to_python()) for end in (points.dim_min_val(dimension), points.dim_max_val(dimension)))
        width = min(most - least + 1, room)
        last = isl.Val.int_from_si(points.get_ctx(), least + width - 1)
        points = points.upper_bound_val(isl.dim_type.set, dimension, last)
        room = max(1, room // width)
    return int(points.count_val().to_python()) > count
