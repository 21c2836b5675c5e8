"""What two statements have in common: their loops, and what they read."""

from __future__ import annotations

import islpy as isl

from tc.polyhedral.ir.scop import ScopStatement


def rank(statement: ScopStatement) -> int:
    """The number of iterators."""
    return int(statement.domain.dim(isl.dim_type.set))


def have_same_loops(first: ScopStatement, second: ScopStatement) -> bool:
    """Whether the two have the same iteration domain, iterator by iterator."""
    if rank(first) != rank(second):
        return False
    return bool(first.domain.reset_tuple_id().is_equal(second.domain.reset_tuple_id()))


def share_reads(first: ScopStatement, second: ScopStatement) -> bool:
    """Whether some tensor is read in the same place by both, at the same values of the iterators."""
    theirs = [relation.reset_tuple_id(isl.dim_type.in_) for relation in second.reads]
    return any(
        relation.reset_tuple_id(isl.dim_type.in_).is_equal(other)
        for relation in first.reads
        for other in theirs
        if relation.get_tuple_name(isl.dim_type.out) == other.get_tuple_name(isl.dim_type.out)
    )


def reads_only(second: ScopStatement, first: ScopStatement) -> bool:
    """Whether the second reads nothing but what the first does, beside what it reduces into."""
    theirs, own = ({relation.get_tuple_name(isl.dim_type.out) for relation in s.reads} for s in (first, second))
    return own - {relation.get_tuple_name(isl.dim_type.out) for relation in second.writes} <= theirs
