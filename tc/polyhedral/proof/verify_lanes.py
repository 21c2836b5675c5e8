"""Proof of warp reductions: every lane reads the partial results that it is meant to read.

An array in lanes has its last dimension spread over the threads along x.  A thread writes only its own part.  It reads
other parts only in a loop over the lanes of its warp that contains nothing else, which is printed as warp shuffles: all
lanes get the total of all parts.  So in iteration ``l`` a thread must read the part of lane ``l`` of its own warp, all
threads of the warp must run that iteration with the same other subscripts, and the total must go to one element of
each.  A warp is a number of consecutive threads along x, aligned to that number; y and z need that x is a multiple of
it.
"""

from __future__ import annotations

import islpy as isl

from tc.language.program.program import Read
from tc.polyhedral.execution.execution import Execution, LocalSubscripts
from tc.polyhedral.ir.counterexample import Counterexample, Violation, pair_text
from tc.polyhedral.ir.loops import LANES, Sharing
from tc.polyhedral.ir.scop import PromotedAccess, Scop, ScopStatement


def check_lanes(scop: Scop, execution: Execution) -> Counterexample | None:
    """The first access to an array in lanes that finds something else, or a thread alone; None for schedule trees."""
    if execution.locals is None:
        return None
    in_lanes = {p.buffer.name for p in scop.promotions if p.buffer.sharing is Sharing.LANES}
    statements = {statement.name: statement for statement in scop.statements}
    for place in execution.locals:
        statement = statements.get(place.instances.get_tuple_name(isl.dim_type.out))
        found = None if statement is None else _check_place(statement, in_lanes, place)
        if found is not None:
            return found
    return None


def _check_place(statement: ScopStatement, in_lanes: set[str], place: LocalSubscripts) -> Counterexample | None:
    warp = place.warp
    accesses = [access for access in statement.promoted if access.buffer in in_lanes]
    reads = [access for access in accesses if not access.writes]
    if not accesses and warp.lane is None:
        return None
    together = warp.x is not None and warp.aligned
    if not together or ((reads or warp.lane is not None) and not _is_total(statement, reads, place)):
        return Counterexample(Violation.ALONE, statement.name)
    for access in accesses:
        number = f"v{warp.x}" if access.writes else f"{LANES} * floor(v{warp.x} / {LANES}) + v{warp.lane}"
        subscripts = place.instances.apply_range(access.place)
        wrong = subscripts.subtract(_with_last(subscripts, number))
        if not wrong.is_empty():
            pairs = place.instances.reverse().apply_range(wrong)
            return Counterexample(Violation.WRONG_ELEMENT, pair_text(isl.UnionMap.from_map(pairs)))
    return None


def _is_total(statement: ScopStatement, reads: list[PromotedAccess], place: LocalSubscripts) -> bool:
    """Whether all lanes of a warp together do nothing here but combine what each of them has."""
    warp, body, points = place.warp, statement.body, place.instances.domain()
    if warp.x is None or warp.lane is None or not warp.alone or body.reduction is None or len(reads) != 1:
        return False
    if not isinstance(body.value, Read) or body.value.tensor != reads[0].buffer:
        return False
    of_warp = _changes(points, warp.x, f"floor(other / {LANES}) = floor(v{warp.x} / {LANES})")
    everywhere = bool(points.apply(of_warp).is_subset(points))
    element = place.instances.apply_range(statement.writes[0])
    others = place.instances.apply_range(reads[0].place)
    others = others.project_out(isl.dim_type.out, others.dim(isl.dim_type.out) - 1, 1)
    of_lanes = _changes(points, warp.lane, "true")
    return (
        everywhere and _is_same(element, of_lanes, points) and _is_same(others, of_warp.apply_range(of_lanes), points)
    )


def _changes(points: isl.Set, position: int, condition: str) -> isl.Map:
    """``{ iteration -> iteration' }`` that differ in one loop, if at all; the condition is on its ``other`` value."""
    loops = [f"v{n}" for n in range(points.dim(isl.dim_type.set))]
    others = [*loops[:position], "other", *loops[position + 1 :]]
    text = f"{{ [{', '.join(loops)}] -> [{', '.join(others)}] : {condition} }}"
    relation = isl.Map.read_from_str(points.get_ctx(), text)
    for side in (isl.dim_type.in_, isl.dim_type.out):
        relation = relation.set_tuple_name(side, points.get_tuple_name())
    return relation


def _is_same(values: isl.Map, changes: isl.Map, points: isl.Set) -> bool:
    """Whether the changes, among the points, lead to the same values."""
    among = changes.intersect_domain(points).intersect_range(points)
    return bool(among.apply_range(values).is_subset(values))


def _with_last(subscripts: isl.Map, number: str) -> isl.Map:
    """``{ iteration -> [subscripts] }`` of which the last one is this function of the loops."""
    last = subscripts.dim(isl.dim_type.out) - 1
    loops = ", ".join(f"v{n}" for n in range(subscripts.dim(isl.dim_type.in_)))
    places = ", ".join(f"a{n}" for n in range(last + 1))
    wanted = isl.Map.read_from_str(subscripts.get_ctx(), f"{{ [{loops}] -> [{places}] : a{last} = {number} }}")
    return wanted.set_tuple_name(isl.dim_type.in_, subscripts.get_tuple_name(isl.dim_type.in_))
