"""The proof that lanes find in each other's registers what they look for.

An array in lanes has its last dimension spread over the threads along x.  Whoever writes must do so to its own part.
Whoever only reads does it in a loop over the lanes of a warp, which becomes an exchange between them: in iteration
``l`` it must read what lane ``l`` of its own warp has, and all threads of the warp must run that iteration.  They are
neighbours along x, from a multiple of their number on, if there is nothing but x, or a multiple of them along it.
"""

from __future__ import annotations

import islpy as isl

from tc.polyhedral.counterexample import Counterexample, Violation, pair_text
from tc.polyhedral.execution import Execution, LocalSubscripts
from tc.polyhedral.loops import LANES, Sharing
from tc.polyhedral.scop import PromotedAccess, Scop


def check_lanes(scop: Scop, execution: Execution) -> Counterexample | None:
    """The first access to an array in lanes that finds something else, or a thread alone; None for schedule trees."""
    in_lanes = {p.buffer.name for p in scop.promotions if p.buffer.sharing is Sharing.LANES}
    if not in_lanes or execution.locals is None:
        return None
    accesses = {s.name: [a for a in s.promoted if a.buffer in in_lanes] for s in scop.statements}
    for place in execution.locals:
        name = place.instances.get_tuple_name(isl.dim_type.out)
        for access in accesses.get(name, ()):
            found = _check_access(name, access, place)
            if found is not None:
                return found
    return None


def _check_access(statement: str, access: PromotedAccess, place: LocalSubscripts) -> Counterexample | None:
    warp = place.warp
    if warp.x is None or not warp.aligned:
        return Counterexample(Violation.ALONE, statement)
    number = f"v{warp.x}"
    if not access.writes:
        if warp.lane is None or not _is_run_by_warps(place.instances.domain(), warp.x):
            return Counterexample(Violation.ALONE, statement)
        number = f"{LANES} * floor({number} / {LANES}) + v{warp.lane}"
    subscripts = place.instances.apply_range(access.place)
    last = subscripts.dim(isl.dim_type.out) - 1
    loops = ", ".join(f"v{n}" for n in range(subscripts.dim(isl.dim_type.in_)))
    places = ", ".join(f"a{n}" for n in range(last + 1))
    text = f"{{ [{loops}] -> [{places}] : a{last} = {number} }}"
    wanted = isl.Map.read_from_str(subscripts.get_ctx(), text).set_tuple_name(
        isl.dim_type.in_, subscripts.get_tuple_name(isl.dim_type.in_)
    )
    wrong = subscripts.subtract(wanted)
    if wrong.is_empty():
        return None
    pairs = place.instances.reverse().apply_range(wrong)
    return Counterexample(Violation.WRONG_ELEMENT, pair_text(isl.UnionMap.from_map(pairs)))


def _is_run_by_warps(points: isl.Set, x: int) -> bool:
    """Whether all lanes of a warp run every iteration that one of them runs."""
    loops = [f"v{n}" for n in range(points.dim(isl.dim_type.set))]
    others = [*loops[:x], "other", *loops[x + 1 :]]
    text = f"{{ [{', '.join(loops)}] -> [{', '.join(others)}] : floor(other / {LANES}) = floor({loops[x]} / {LANES}) }}"
    bare = points.reset_tuple_id()
    return bool(bare.apply(isl.Map.read_from_str(points.get_ctx(), text)).is_subset(bare))
