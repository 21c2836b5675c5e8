"""Constraints of the scheduler: dependences, statements that must stay together, and proximity."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass

import islpy as isl

from tc.language.isl.pieces import maps_of
from tc.polyhedral.ir.scop import Scop, ScopStatement


@dataclass(frozen=True)
class Dependences:
    """Pairs ``source -> sink`` of instances.

    ``order``: conflicts between different statements, source first in program order; they must stay in order.
    ``accumulation``: conflicts among instances of one reducing statement; any order, but never at once.
    ``flow``: from the last write of a value to its reads; worth keeping close.
    """

    order: isl.UnionMap
    accumulation: isl.UnionMap
    flow: isl.UnionMap

    @property
    def conflicts(self) -> isl.UnionMap:
        """Pairs of instances that must not run at the same time."""
        return self.order.union(self.accumulation)


def analyze_dependences(scop: Scop) -> Dependences:
    """All conflicting pairs through isl's may-sources, and the exact flow through its must-sources.

    May-sources keep every pair.  With must-sources, dropping a reduction's self-dependences would leave only its last
    instance ordered before its readers.
    """
    schedule = _program_order(scop)
    reads = union_of_accesses(scop.statements, scop.context, writes=False)
    writes = union_of_accesses(scop.statements, scop.context, writes=True)

    def pairs(source: isl.UnionMap, sink: isl.UnionMap, *, last_only: bool = False) -> isl.UnionMap:
        information = isl.UnionAccessInfo.from_sink(sink)
        information = information.set_must_source(source) if last_only else information.set_may_source(source)
        return information.set_schedule_map(schedule).compute_flow().get_may_dependence()

    everything = pairs(writes, reads).union(pairs(writes, writes)).union(pairs(reads, writes)).coalesce()
    order, accumulation = _split(everything)
    flow, _ = _split(pairs(writes, reads, last_only=True))
    return Dependences(order, accumulation, flow)


def _program_order(scop: Scop) -> isl.UnionMap:
    """Statements in order, the instances of one in lexicographic order: any order among those is legal."""
    depth = max((s.domain.dim(isl.dim_type.set) for s in scop.statements), default=0)
    union = isl.UnionMap.empty(isl.Space.params_alloc(scop.context, 0))
    for position, statement in enumerate(scop.statements):
        domain = statement.domain
        schedule = isl.Map.identity(domain.get_space().map_from_set()).reset_tuple_id(isl.dim_type.out)
        missing = depth - domain.dim(isl.dim_type.set)
        schedule = _fix(schedule.insert_dims(isl.dim_type.out, 0, 1), 0, position)
        schedule = schedule.add_dims(isl.dim_type.out, missing)
        for added in range(missing):
            schedule = _fix(schedule, depth + 1 - missing + added, 0)
        union = union.union(isl.UnionMap.from_map(schedule.intersect_domain(domain)))
    return union


def _fix(schedule: isl.Map, position: int, value: int) -> isl.Map:
    return schedule.fix_val(isl.dim_type.out, position, isl.Val.int_from_si(schedule.get_ctx(), value))


def union_of_accesses(statements: Items[ScopStatement], context: isl.Context, *, writes: bool) -> isl.UnionMap:
    """All that the statements write, or all that they read."""
    union = isl.UnionMap.empty(isl.Space.params_alloc(context, 0))
    for statement in statements:
        for relation in statement.writes if writes else statement.reads:
            union = union.union(isl.UnionMap.from_map(relation))
    return union


def _split(pairs: isl.UnionMap) -> tuple[isl.UnionMap, isl.UnionMap]:
    """Pairs of different statements, and pairs within one statement."""
    between = isl.UnionMap.empty(pairs.get_space())
    within = between
    found = maps_of(pairs)
    for relation in found:
        single = isl.UnionMap.from_map(relation)
        if relation.get_tuple_name(isl.dim_type.in_) == relation.get_tuple_name(isl.dim_type.out):
            within = within.union(single)
        else:
            between = between.union(single)
    return between, within
