"""The proof that a mapped program means what the definition says.

Shown with isl, for a schedule tree and again for the loop tree made of it:

1. every instance of every statement runs exactly once, and nothing else runs; in loops, also as it is launched
   (``tc.polyhedral.execution.launched``), and as a node of the right kind (``tc.polyhedral.proof.verify_leaves``);
2. every conflicting pair of instances runs in program order, and never at the same time; instances of one reducing
   statement may run in any order, but not at the same time (unless lanes keep their partial results apart);
3. every access stays inside its buffer (``tc.polyhedral.proof.verify_bounds``);
4. a promoted access finds in its buffer the element that it stands for (``tc.polyhedral.proof.verify_promotion``), what
   is copied asynchronously has arrived (``tc.polyhedral.proof.verify_rotation``), and what is in a register of another
   thread is in its warp, which takes part (``tc.polyhedral.proof.verify_lanes``); so are the lanes of matrix
   instructions, which hold what these multiply (``tc.polyhedral.proof.tensor.verify_matrices``).
   What two sorts of threads run in place of a loop does the same (``tc.polyhedral.proof.tensor.verify_streams``).

That the statements themselves are still those of the program is ``tc.polyhedral.proof.verify_statements``; what follows
from them for every execution is ``tc.polyhedral.proof.demands``.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from enum import Enum
from functools import reduce
from typing import Final

import islpy as isl

from tc.base.errors import VerificationError
from tc.base.proof import Proof
from tc.language.isl.pieces import maps_of, sets_of
from tc.language.isl.unnamed import Unnamed
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
from tc.polyhedral.proof.tensor.verify_matrices import check_matrices
from tc.polyhedral.proof.tensor.verify_streams import check_streams
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
        or check_matrices(scop, execution)
        or check_streams(scop, execution)
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


class _Order(Enum):
    """What two statements say about instances of them that nothing else tells apart: by their places in a sequence."""

    BEFORE = "before"  # those of the first one run first
    AFTER = "after"
    NONE = "none"


class _Timetable:
    """When the instances of every statement that runs do so, wherever it stands."""

    def __init__(self, execution: Execution) -> None:
        self.dimensions: Final = execution.dimensions
        self._times: Final = execution.times
        self._some: Final[dict[tuple[str, tuple[int, ...]], isl.Map]] = {}
        self._fixed_ones: Final[dict[str, tuple[int | None, ...]]] = {}
        # Pairs of times that were found to be as rules have them, whatever the instances are called.
        self.right: Final[set[object]] = set()

    def run(self, statement: str) -> bool:
        return statement in self._times

    def apart(self, first: str, second: str) -> tuple[tuple[int, ...], _Order]:
        """The dimensions that may tell instances of two apart, and the order of those that none of them does."""
        found: list[int] = []
        begins, ends = self._fixed(first), self._fixed(second)
        for position, concurrency in enumerate(self.dimensions):
            begin, end = begins[position], ends[position]
            if begin is None or begin != end:
                if begin is not None and end is not None and concurrency is Concurrency.ORDERED:
                    return tuple(found), _Order.BEFORE if begin < end else _Order.AFTER
                found.append(position)
        return tuple(found), _Order.NONE

    def _fixed(self, statement: str) -> tuple[int | None, ...]:
        if statement not in self._fixed_ones:
            first, *others = (own.fixed for own in self._times[statement])
            self._fixed_ones[statement] = tuple(
                value if all(own[n] == value for own in others) else None for n, value in enumerate(first)
            )
        return self._fixed_ones[statement]

    def along(self, statement: str, dimensions: tuple[int, ...]) -> isl.Map:
        """Of these dimensions only."""
        found = self._some.get((statement, dimensions))
        if found is None:
            every = (own.along(dimensions) for own in self._times[statement])
            found = self._some[statement, dimensions] = reduce(isl.Map.union, every)
        return found


def _check_pairs(conflict: Conflict, every: _Timetable, *, with_itself: bool = False) -> Counterexample | None:
    """Whether the times of all pairs are as the rule has it; ``with_itself``: also of an instance and the same one."""
    for instances in maps_of(conflict.pairs):
        first, second = _ends(instances)
        if not (every.run(first) and every.run(second)):
            continue  # which is said elsewhere
        found = _check_pair(instances, conflict.rule, every, with_itself=with_itself)
        if found is not None:
            return found
    return None


def _check_pair(instances: isl.Map, rule: Rule, every: _Timetable, *, with_itself: bool) -> Counterexample | None:
    """``_check_pairs`` for pairs of two statements.

    Every instance has one time, so pairs of times stand for pairs of instances; they stay few where unrolled loops have
    many leaves.  What is right for some is so for all that are related and run alike: gates of a network, for example.
    """
    first, second = _ends(instances)
    dimensions, order = every.apart(first, second)
    if not dimensions and order is _Order.BEFORE:
        return None
    begun, ended = every.along(first, dimensions), every.along(second, dimensions)
    sorts = tuple(every.dimensions[n] for n in dimensions)
    alike = (Unnamed(instances), Unnamed(begun), Unnamed(ended), sorts, order, rule, first == second)
    if (alike, with_itself) in every.right:
        return None
    wrong = _find_wrong(instances, dimensions, order, every, rule)
    if wrong is not None:
        violation, times = wrong
        # Instances are taken out here, where few pairs are left: to leave them out of all is to take all apart.
        ends = times.apply_domain(begun.reverse()).apply_range(ended.reverse()).intersect(instances)
        witness = isl.UnionMap.from_map(ends)
        if not with_itself:
            witness = different(witness)
        if not witness.is_empty():
            return Counterexample(violation, pair_text(witness))
    every.right.add((alike, with_itself))
    return None


def _ends(instances: isl.Map) -> tuple[str, str]:
    """The statements of pairs."""
    return instances.get_tuple_name(isl.dim_type.in_), instances.get_tuple_name(isl.dim_type.out)


def _find_wrong(
    instances: isl.Map, dimensions: tuple[int, ...], order: _Order, every: _Timetable, rule: Rule
) -> tuple[Violation, isl.Map] | None:
    """Pairs of times, in these dimensions, that are not as the rule has it; ``order``: where they are equal."""
    if rule in _STRICT:
        # What is in order whatever the threads are costs less without them: they count in unlike ways.
        without = tuple(n for n in dimensions if every.dimensions[n] is not Concurrency.THREADS)
        if without != dimensions and _find_wrong(instances, without, order, every, rule) is None:
            return None
    first, second = _ends(instances)
    times = instances.apply_domain(every.along(first, dimensions)).apply_range(every.along(second, dimensions))
    wrong = _wrong_distances(distances_of(times), [every.dimensions[n] for n in dimensions], order, rule)
    return None if wrong is None else (wrong[0], times.intersect(times_at(wrong[1])))


def _wrong_distances(
    distances: isl.Set, dimensions: Items[Concurrency], order: _Order, rule: Rule
) -> tuple[Violation, isl.Set] | None:
    """Walk the time dimensions outside in; a pair is settled at the first one that tells its ends apart.

    What must be in order must be so on all threads.  That it does not happen at the same time on two of them, and what
    need not be in order, is for ``verify_threads``.  ``order``: of pairs that no dimension tells
    apart.
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
    if order is not _Order.NONE:
        # Where the rule is not strict, another time is all that is asked for.
        reordered = order is _Order.AFTER and strict and not distances.is_empty()
        return (Violation.REORDERED, distances) if reordered else None
    for position in threads:
        distances = equal(distances, position)
    return None if distances.is_empty() else (Violation.CONCURRENT, distances)
