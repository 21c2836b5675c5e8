"""Lanes of a reduction along its own loop: a fixed number of independent partial results, combined at the end.

Several vectors of partial sums hide the latency of additions.  The loop is strip-mined by that number; the remaining
iterations use the first lanes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import islpy as isl

from tc.language.isl.pieces import functions_of
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.tree import Band, Filter, Member, Node, Sequence

# So many vectors of partial results: additions take about four cycles, and one or two begin in each.
VECTORS: Final = 4
# Terms that are added up one after the other.
MOST_IN_A_CHAIN: Final = 32


def cut_lanes(band: Band, domain: isl.UnionSet, lanes: int, *, ranged: bool = False, few: bool = False) -> Node:
    """The innermost band with its last loop, a reduction, cut into runs of ``lanes``; as it is where it is short.

    ``ranged``: a statement reads its range, in front of loops that must have iterations for all sizes that are open.
    ``few``: rows of a few vectors have the lanes of one, as those of sums that are cut at the end of each short chain.
    """
    *outer, last = band.members
    extent = extent_of(last.function, domain)
    if few and MOST_IN_A_CHAIN < extent < 2 * lanes:
        lanes //= VECTORS
    if last.kind is not LoopKind.REDUCTION or extent < 2 * lanes:
        return band
    last_value = _last(last.function, domain)
    if ranged and not last_value.is_cst():
        return band
    least = int(isl.UnionPwAff.intersect_domain(last.function, domain).floor().min_val().to_python())
    first = _first(last.function, _whole_runs(last_value, least, lanes), domain)
    main = _runs(replace(last, function=last.function.intersect_domain(first)), least, lanes)
    if domain.is_subset(first):
        return replace(band, members=(*outer, *main))
    rest = domain.universe().subtract(first)
    left = replace(last, function=last.function.intersect_domain(rest))
    tail: Node = Band((left,), permutable=True, child=band.child)
    branches = Sequence((Filter(first, Band(main, permutable=True, child=band.child)), Filter(rest, tail)))
    return Band(tuple(outer), band.permutable, branches) if outer else branches


def _runs(member: Member, least: int, lanes: int) -> tuple[Member, Member]:
    size = isl.Val.int_from_si(member.function.get_ctx(), lanes)
    moved = _moved(member.function, -least)
    run = Member(moved.scale_down_val(size).floor(), member.coincident)
    return run, replace(member, function=moved.mod_val(size))


def _moved(function: isl.UnionPwAff, distance: int) -> isl.UnionPwAff:
    if distance == 0:
        return function
    value = isl.Val.int_from_si(function.get_ctx(), distance)
    return function.add(isl.UnionPwAff.val_on_domain(function.domain(), value))


def _last(function: isl.UnionPwAff, domain: isl.UnionSet) -> isl.PwAff:
    """The greatest value, which depends on sizes that are open."""
    values = isl.UnionMap.from_union_pw_aff(function.intersect_domain(domain)).range()
    return isl.Set.from_union_set(values).dim_max(0)


def _whole_runs(last: isl.PwAff, least: int, lanes: int) -> isl.Set:
    """``{ [value] }`` below the end of the last whole run."""
    below = f"{{ [last] -> [value] : value < {least} + {lanes} * floor((last + 1 - {least}) / {lanes}) }}"
    return isl.Set.from_pw_aff(last).apply(isl.Map.read_from_str(last.get_ctx(), below))


def _first(function: isl.UnionPwAff, values: isl.Set, domain: isl.UnionSet) -> isl.UnionSet:
    """The points, of any instances, where the function has one of the values."""
    below = isl.UnionSet.empty(domain.get_space())
    for piece in functions_of(function.intersect_domain(domain.universe())):
        below = below.union(isl.UnionSet.from_set(isl.Map.from_pw_aff(piece).intersect_range(values).domain()))
    return below
