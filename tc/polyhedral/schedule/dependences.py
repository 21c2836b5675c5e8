"""Constraints of the scheduler: dependences, statements that must stay together, and proximity."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass

import islpy as isl

from tc.language.isl.original_order import in_one_step, original_order
from tc.language.isl.pieces import maps_of
from tc.polyhedral.ir.scop import Scop, ScopStatement


@dataclass(frozen=True)
class Dependences:
    """Pairs ``source -> sink`` of instances.

    ``order``: conflicts between different statements, source first in program order; they must stay in order.
    ``steps``: those among instances of one statement in different steps of its blocks; they must stay in order, too.
    ``accumulation``: conflicts among instances of one reducing statement; any order, but never at once.  Atomic
    updates of a statement have none.
    ``flow``: from the last write of a value to its reads; worth keeping close.
    """

    order: isl.UnionMap
    steps: isl.UnionMap
    accumulation: isl.UnionMap
    flow: isl.UnionMap

    @property
    def conflicts(self) -> isl.UnionMap:
        """Pairs of instances that must not run at the same time."""
        return self.order.union(self.steps).union(self.accumulation)


def analyze_dependences(scop: Scop) -> Dependences:
    """All conflicting pairs through isl's may-sources, and the exact flow through its must-sources.

    May-sources keep every pair.  With must-sources, dropping a reduction's self-dependences would leave only its last
    instance ordered before its readers.
    """
    schedule = original_order([(s.blocks, s.domain) for s in scop.statements], scop.context)
    reads = union_of_accesses(scop.statements, scop.context, writes=False)
    writes = union_of_accesses(scop.statements, scop.context, writes=True)

    def pairs(source: isl.UnionMap, sink: isl.UnionMap, *, last_only: bool = False) -> isl.UnionMap:
        information = isl.UnionAccessInfo.from_sink(sink)
        information = information.set_must_source(source) if last_only else information.set_may_source(source)
        return information.set_schedule_map(schedule).compute_flow().get_may_dependence()

    everything = pairs(writes, reads).union(pairs(writes, writes)).union(pairs(reads, writes)).coalesce()
    order, within = _split(everything)
    steps, accumulation = _split_steps(within, scop.statements)
    flow, _ = _split(pairs(writes, reads, last_only=True))
    return Dependences(order, steps, accumulation, flow)


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


def _split_steps(within: isl.UnionMap, statements: Items[ScopStatement]) -> tuple[isl.UnionMap, isl.UnionMap]:
    """Pairs within statements that are in order, and those that may run in any order.

    What only combines terms into its target does so in any order, in whatever steps.
    """
    steps = isl.UnionMap.empty(within.get_space())
    accumulation = steps
    named = {statement.name: statement for statement in statements}
    for pairs in maps_of(within):
        statement, depth = named[pairs.get_tuple_name(isl.dim_type.in_)], 0
        if not only_accumulates(statement):
            depth = len(statement.blocks)
        elif statement.body.atomic:
            continue
        if depth:
            earlier = isl.Map.lex_lt_first(pairs.get_space(), depth)
            steps = steps.union(isl.UnionMap.from_map(pairs.intersect(earlier)))
        unordered = pairs.intersect(in_one_step(pairs.get_space(), depth)) if depth else pairs
        accumulation = accumulation.union(isl.UnionMap.from_map(unordered))
    return steps, accumulation


def only_accumulates(statement: ScopStatement) -> bool:
    """Whether the statement reduces, and reads of its target no more than what it combines terms into."""
    name = statement.writes[0].get_tuple_name(isl.dim_type.out)
    own = [relation for relation in statement.reads if relation.get_tuple_name(isl.dim_type.out) == name]
    return statement.accumulates and len(own) == 1
