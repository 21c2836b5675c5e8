"""What a scop asks of every execution of it, be it that of a schedule or that of loops."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from tc.polyhedral.ir.counterexample import Counterexample, Violation, pair_text
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.proof.conflicts import Conflict, Meeting, Rule, conflicts_of, different, meetings_of, own_pairs
from tc.polyhedral.proof.verify_bounds import check_bounds
from tc.polyhedral.proof.verify_promotion import check_places
from tc.polyhedral.proof.verify_rotation import awaited_pairs


@dataclass(frozen=True)
class Demands:
    """The conflicts between its instances, and what else the proof needs to know of the scop alone.

    ``awaited``: of pairs that are in order if copies that end by themselves have ended before anybody needs what they
    copy, or where it lies.  ``meetings``: of pairs at one place, which threads must not race for.  ``broken``: why no
    execution can be right.
    """

    conflicts: tuple[Conflict, ...]
    meetings: tuple[Meeting, ...]
    awaited: tuple[Conflict, ...]
    broken: Counterexample | None


def demands_of(scop: Scop) -> Demands:
    """Found once for all executions of the scop."""
    unknown, awaited = _awaited(scop)
    broken = check_bounds(scop) or _written_twice(scop) or unknown or check_places(scop)
    conflicts = conflicts_of(scop)
    in_tensors = (Meeting(conflict.pairs) for conflict in conflicts if conflict.in_tensors)
    return Demands(conflicts, (*in_tensors, *meetings_of(scop)), awaited, broken)


def _written_twice(scop: Scop) -> Counterexample | None:
    for statement in scop.statements:
        if not statement.accumulates:
            twice = different(isl.UnionMap.from_map(own_pairs(statement)))
            if not twice.is_empty():
                return Counterexample(Violation.WRITTEN_TWICE, pair_text(twice))
    return None


def _awaited(scop: Scop) -> tuple[Counterexample | None, tuple[Conflict, ...]]:
    copying = {p.loads: p for p in scop.promotions if p.loads is not None}
    waiting = [p for name, p in copying.items() if p.rotation is not None or name in scop.awaits]
    for name in sorted(scop.awaits.keys() - copying.keys()):
        return Counterexample(Violation.NOT_AWAITED, name), ()
    found: list[tuple[Rule, isl.Map]] = []
    for promotion in waiting:
        unknown, pairs = awaited_pairs(scop, promotion)
        if unknown is not None:
            return Counterexample(Violation.NOT_AWAITED, unknown), ()
        for number, needed in enumerate(pairs):
            rule = Rule.IN_ORDER if number < 2 else Rule.IN_ORDER_IN_BLOCK
            # Promotions of one loop wait for one barrier.
            if not any(own is rule and needed.plain_is_equal(other) for own, other in found):
                found.append((rule, needed))
    return None, tuple(Conflict(isl.UnionMap.from_map(pairs), rule) for rule, pairs in found)
