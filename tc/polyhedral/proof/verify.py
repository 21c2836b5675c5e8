"""The proof that a mapped program means what the definition says.

Shown with isl, for a schedule tree and again for the loop tree made of it:

1. every instance of every statement runs exactly once, and nothing else runs; in loops, also as it is launched
   (``tc.polyhedral.execution.launched``), and as a node of the right kind (``tc.polyhedral.proof.verify_leaves``);
2. every conflicting pair of instances runs in program order, and never at the same time; instances of one reducing
   statement may run in any order, but not at the same time (unless lanes keep their partial results apart);
3. every access stays inside its buffer (``tc.polyhedral.proof.verify_bounds``);
4. a promoted access finds in its buffer the element that it stands for (``tc.polyhedral.proof.verify_promotion``), what
   is copied asynchronously has arrived (``tc.polyhedral.proof.verify_rotation``), and what is in a register of another
   thread is in its warp, which takes part (``tc.polyhedral.proof.verify_lanes``).

That the statements themselves are still those of the program is ``tc.polyhedral.proof.verify_statements``; what follows
from them for every execution is ``tc.polyhedral.proof.demands``.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from functools import reduce
from typing import Final

import islpy as isl

from tc.base.errors import VerificationError
from tc.base.proof import Proof
from tc.language.isl.pieces import maps_of, sets_of
from tc.polyhedral.analysis.distances import (
    distances_of,
    equal,
    first_earlier,
    first_later,
    is_plainly_zero,
    times_at,
)
from tc.polyhedral.execution.execution import Concurrency, Execution
from tc.polyhedral.ir.counterexample import Counterexample, Violation, pair_text, point_text
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.proof.conflicts import Conflict, Rule, different
from tc.polyhedral.proof.demands import Demands, demands_of
from tc.polyhedral.proof.verify_lanes import check_lanes
from tc.polyhedral.proof.verify_leaves import check_leaves
from tc.polyhedral.proof.verify_promotion import check_scopes
from tc.polyhedral.proof.verify_threads import check_threads


def prove(scop: Scop, execution: Execution, stage: str, demands: Demands | None = None) -> Proof:
    """The proof; VerificationError with a witness where it fails.

    ``demands``: ``demands_of(scop)``, for one of several proofs.
    """
    demands = demands or demands_of(scop)
    found = _find_counterexample(scop, execution, demands)
    if found is not None:
        raise VerificationError(f"the {stage} is not proven correct: {found}")
    accesses = sum(len(s.reads) + len(s.writes) + len(s.promoted) for s in scop.statements)
    pairs = sum(conflict.pairs.n_map() for conflict in demands.conflicts)
    return Proof(len(scop.statements), pairs, accesses, execution.leaves)


def find_counterexample(scop: Scop, execution: Execution) -> Counterexample | None:
    """The first failure of the proof, or None: the execution is correct."""
    return _find_counterexample(scop, execution, demands_of(scop))


def _find_counterexample(scop: Scop, execution: Execution, demands: Demands) -> Counterexample | None:
    return (
        _check_instances(scop, execution)
        or check_leaves(scop, execution)
        or demands.broken
        or _check_order(execution, demands)
        or check_threads(scop, execution, demands.meetings)
        or check_scopes(scop, execution)
        or check_lanes(scop, execution)
    )


# --- 1. exactly once -----------------------------------------------------------------------------------------


def _check_instances(scop: Scop, execution: Execution) -> Counterexample | None:
    for where in execution.misuse:
        return Counterexample(Violation.MISUSED_DIVISION, str(where.sample()).strip("{ }"))
    for statement in execution.unlaunched:
        return Counterexample(Violation.UNLAUNCHED, statement)
    running = execution.running
    wanted = scop.domain
    if not _is_inside(wanted, running):
        return Counterexample(Violation.MISSING, point_text(wanted.subtract(running)))
    if not _is_inside(running, wanted):
        return Counterexample(Violation.FOREIGN, point_text(running.subtract(wanted)))
    return None if execution.once else _check_repeated(execution)


def _check_repeated(execution: Execution) -> Counterexample | None:
    times = isl.UnionMap.empty(execution.running.get_space())
    for places in execution.times.values():
        for own in places:
            times = times.union(isl.UnionMap.from_map(own.whole))
    if times.is_single_valued():
        return None
    twice = times.reverse().apply_range(times)  # { time -> other time of the same instance }
    apart = twice.subtract(twice.domain().identity())
    return Counterexample(Violation.REPEATED, point_text(times.intersect_range(apart.domain()).domain()))


def _is_inside(instances: isl.UnionSet, others: isl.UnionSet) -> bool:
    """Whether all of them are among the others: of most statements, these are plainly the same, which costs nothing."""
    own = sets_of(instances)
    among = (others.extract_set(piece.get_space()) for piece in own)
    return all(piece.plain_is_equal(other) or piece.is_subset(other) for piece, other in zip(own, among, strict=True))


# --- 2. order ------------------------------------------------------------------------------------------------

# What must be so on all threads.
_STRICT: Final = (Rule.IN_ORDER, Rule.IN_ORDER_IN_BLOCK)


def _check_order(execution: Execution, demands: Demands) -> Counterexample | None:
    times = _Timetable(execution)
    for conflict in demands.conflicts:
        found = _check_pairs(conflict, times)
        if found is not None:
            return found
    for needed in demands.awaited:
        found = _check_pairs(needed, times, with_itself=True)
        if found is not None:
            return Counterexample(Violation.NOT_AWAITED, found.witness)
    return None


class _Timetable:
    """When the instances of every statement that runs do so, wherever it stands."""

    def __init__(self, execution: Execution) -> None:
        self.dimensions: Final = execution.dimensions
        self._times: Final = execution.times
        self._some: Final[dict[tuple[str, tuple[int, ...]], isl.Map]] = {}

    def run(self, statement: str) -> bool:
        return statement in self._times

    def apart(self, first: str, second: str) -> tuple[int, ...]:
        """The dimensions that may tell instances of two apart, up to one that tells all of them, whatever they are."""
        found: list[int] = []
        begins, ends = self._fixed(first), self._fixed(second)
        for position, concurrency in enumerate(self.dimensions):
            begin, end = begins[position], ends[position]
            if begin is None or begin != end:
                found.append(position)
                if None not in (begin, end) and concurrency is Concurrency.ORDERED:
                    break
        return tuple(found)

    def stand_in_order(self, first: str, second: str, dimensions: tuple[int, ...]) -> bool:
        """Whether all instances of the first one run before those of the second, by the one dimension that counts."""
        if len(dimensions) != 1 or self.dimensions[dimensions[0]] is not Concurrency.ORDERED:
            return False
        begin, end = self._fixed(first)[dimensions[0]], self._fixed(second)[dimensions[0]]
        return begin is not None and end is not None and begin < end

    def _fixed(self, statement: str) -> tuple[int | None, ...]:
        first, *others = (own.fixed for own in self._times[statement])
        if not others:
            return first
        return tuple(value if all(own[n] == value for own in others) else None for n, value in enumerate(first))

    def along(self, statement: str, dimensions: tuple[int, ...]) -> isl.Map:
        """Of these dimensions only."""
        found = self._some.get((statement, dimensions))
        if found is None:
            every = (own.along(dimensions) for own in self._times[statement])
            found = self._some[statement, dimensions] = reduce(isl.Map.union, every)
        return found


def _check_pairs(conflict: Conflict, every: _Timetable, *, with_itself: bool = False) -> Counterexample | None:
    """Whether the times of all pairs are as the rule has it; ``with_itself``: also of an instance and the same one.

    Every instance has one time, so pairs of times stand for pairs of instances; they stay few where unrolled loops have
    many leaves.
    """
    for instances in maps_of(conflict.pairs):
        first, second = (instances.get_tuple_name(side) for side in (isl.dim_type.in_, isl.dim_type.out))
        if not (every.run(first) and every.run(second)):
            continue  # which is said elsewhere
        dimensions = every.apart(first, second)
        if every.stand_in_order(first, second, dimensions):
            continue
        if conflict.rule in _STRICT:
            # What is in order whatever the threads are costs less without them: they count in unlike ways.
            without = tuple(n for n in dimensions if every.dimensions[n] is not Concurrency.THREADS)
            if without != dimensions and _find_wrong(instances, without, every, conflict.rule) is None:
                continue
        wrong = _find_wrong(instances, dimensions, every, conflict.rule)
        if wrong is not None:
            violation, times = wrong
            # Instances are taken out here, where few pairs are left: to leave them out of all is to take all apart.
            begun, ended = every.along(first, dimensions), every.along(second, dimensions)
            ends = times.apply_domain(begun.reverse()).apply_range(ended.reverse()).intersect(instances)
            witness = isl.UnionMap.from_map(ends)
            if not with_itself:
                witness = different(witness)
            if not witness.is_empty():
                return Counterexample(violation, pair_text(witness))
    return None


def _find_wrong(
    instances: isl.Map, dimensions: tuple[int, ...], every: _Timetable, rule: Rule
) -> tuple[Violation, isl.Map] | None:
    """Pairs of times, in these dimensions, that are not as the rule has it."""
    first, second = (instances.get_tuple_name(side) for side in (isl.dim_type.in_, isl.dim_type.out))
    times = instances.apply_domain(every.along(first, dimensions)).apply_range(every.along(second, dimensions))
    wrong = _wrong_distances(distances_of(times), [every.dimensions[n] for n in dimensions], rule)
    return None if wrong is None else (wrong[0], times.intersect(times_at(wrong[1])))


def _wrong_distances(
    distances: isl.Set, dimensions: Items[Concurrency], rule: Rule
) -> tuple[Violation, isl.Set] | None:
    """Walk the time dimensions outside in; a pair is settled at the first one that tells its ends apart.

    What must be in order must be so on all threads.  That it does not happen at the same time on two of them, and what
    need not be in order, is for ``verify_threads``.
    """
    same_block, lanes, strict = rule is Rule.IN_ORDER_IN_BLOCK, rule is Rule.APART_OR_LANES, rule in _STRICT
    threads: list[int] = []
    for position, concurrency in enumerate(dimensions):
        if is_plainly_zero(distances, position):
            continue  # most levels of most pairs: positions in a sequence, and the padding of short paths
        if concurrency is Concurrency.THREADS and strict:
            threads.append(position)
            continue
        if concurrency is Concurrency.THREADS or (concurrency is Concurrency.BLOCKS and same_block):
            distances = equal(distances, position)
            if distances.is_empty():
                return None
            continue
        separates = concurrency is Concurrency.ORDERED or (concurrency is Concurrency.LANES and lanes)
        if strict or not separates:
            later = first_later(distances, position)
            if not later.is_empty():
                return Violation.REORDERED if separates else Violation.CONCURRENT, later
        if not separates:
            earlier = first_earlier(distances, position)
            if not earlier.is_empty():
                return Violation.CONCURRENT, earlier
        distances = equal(distances, position)
        if distances.is_empty():
            return None
    for position in threads:
        distances = equal(distances, position)
    return None if distances.is_empty() else (Violation.CONCURRENT, distances)
