"""Proof of race freedom: conflicting accesses of the threads of a block are ordered by barriers.

Threads run concurrently, except that all of them wait at a barrier.  Take two instances on different threads of a block
that access one place, one of them writing, and the first dimension of their time, inside of the threads, in which they
differ.  They are ordered if a barrier lies between their positions in a sequence; or follows the earlier one in its
iteration; or precedes the later one in its own; or stands in a deeper loop, in an iteration after the earlier one's or
before the later one's.  For every thread runs the same barriers in the same order: wherever there is a barrier, all
threads run the same iterations, which is checked of the loops.

What matrix instructions read, any lane of the warp may read: a barrier stands between that and every write, whichever
thread has it.  Where they are awaited at a barrier, one also stands before whatever else touches their sums.

Arrays in lanes need no barrier: a thread that reads one does so while its owner takes part in the shuffle, and has come
as far (``tc.polyhedral.proof.verify_lanes``).  It is enough that the two differ in nothing but the thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from enum import Enum
from functools import reduce
from itertools import product
from typing import Final

import islpy as isl

from tc.language.isl.pieces import maps_of
from tc.polyhedral.analysis.distances import distances_of, equal, first_earlier, first_later, times_at
from tc.polyhedral.analysis.extents import later_in
from tc.polyhedral.execution.execution import Concurrency, Execution, MatrixPlace, ThreadLeaf
from tc.polyhedral.ir.counterexample import Counterexample, Violation, pair_text
from tc.polyhedral.ir.loops import GroupMma
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.proof.conflicts import Meeting


def check_threads(scop: Scop, execution: Execution, meetings: Items[Meeting]) -> Counterexample | None:
    """The first race, or None.

    That what must be in order is so on all threads is proven elsewhere.
    """
    for barrier in execution.divergent:
        return Counterexample(Violation.DIVERGENT, barrier)
    if not execution.places:
        return None
    barriers = _Barriers(scop, execution)
    places: dict[str, list[ThreadLeaf]] = {}
    for leaf in execution.places:
        places.setdefault(leaf.statement, []).append(leaf)
    for meeting in meetings:
        for instances in maps_of(meeting.pairs):
            ends = (places.get(instances.get_tuple_name(side), ()) for side in (isl.dim_type.in_, isl.dim_type.out))
            for first, second in product(*ends):
                found = _race(instances, first, second, barriers, in_lanes=meeting.in_lanes)
                if found is not None:
                    return found
    return next(filter(None, (_touched_under_way(scop, place, execution) for place in execution.matrices)), None)


def _touched_under_way(scop: Scop, place: MatrixPlace, execution: Execution) -> Counterexample | None:
    """What touches the sums of instructions that are under way, before the next barrier of the thread; None without.

    Others of the same shape may add to the same sums, one behind the other (PTX ISA: ``wgmma.fence``).
    """
    if not isinstance(place.node, GroupMma) or place.node.awaited:
        return None
    statement = scop.statement(str(place.instances.get_tuple_name(isl.dim_type.out)))
    alike = sum(
        isinstance(other.node, GroupMma) and other.node.shape == place.node.shape
        for other in execution.matrices
        if other.instances.get_tuple_name(isl.dim_type.out) == statement.name
    )
    places = execution.places
    firsts = [leaf for leaf in places if leaf.statement == statement.name]
    if alike < len(firsts):
        return Counterexample(Violation.UNFENCED, statement.name)
    barriers, buffer = _Barriers(scop, execution), statement.body.target
    own = next(access for access in statement.promoted if access.buffer == buffer)
    for other, access in ((s, a) for s in scop.statements if s is not statement for a in s.promoted):
        if access.buffer != buffer:
            continue
        pairs = own.place.apply_range(access.place.reverse())
        seconds = (leaf for leaf in places if leaf.statement == other.name)
        for first, second in product(firsts, seconds):
            found = _race(pairs, first, second, barriers, in_lanes=False, sides=(_Side.EARLIER,))
            if found is not None:
                return found
    return None


def _race(
    instances: isl.Map,
    first: ThreadLeaf,
    second: ThreadLeaf,
    barriers: _Barriers,
    *,
    in_lanes: bool,
    sides: Items[_Side] | None = None,
) -> Counterexample | None:
    """A pair that no barrier orders; ``sides``: where the first one is the earlier or the later one, None for both."""
    dimensions, leaves = barriers.dimensions, (first, second)
    doubtful, decided = _doubtful(first, second, dimensions)
    doubtful = doubtful if sides is None else _of_sides(doubtful, sides)
    if first.threads != second.threads and not _in_different_kernels(first, second):
        # Threads are told apart by their loops, and these are the same ones only where they are at the same levels.
        return Counterexample(Violation.RACE, pair_text(isl.UnionMap.from_map(instances)))
    if in_lanes:
        doubtful = {}
    if decided and not doubtful:
        return None
    if decided:
        # What comes after the last doubtful dimension is of no importance.
        last_thread = max(position for position, sort in enumerate(dimensions) if sort is Concurrency.THREADS)
        dimensions = dimensions[: max(last_thread, *doubtful) + 1]
        if len(doubtful) == 1 and _is_apart_on_all_threads(instances, leaves, dimensions, *doubtful.items()):
            return None
    begun, ended = (leaf.times.along(tuple(range(len(dimensions)))) for leaf in leaves)
    times = instances.apply_domain(begun).apply_range(ended)
    inside = _inside_kernels(first, second)
    left = _in_one_block(distances_of(times), dimensions, inside)
    # Where one dimension at most is in doubt, few pairs are left then, and threads are looked at last.
    late = len(doubtful) <= 1
    if not late:
        left = _apart(left, dimensions, leaves)
    for position in range(inside, max(doubtful) + 1 if decided else len(dimensions)):
        doubts = doubtful.get(position, ())
        if doubts and left.is_empty():
            return None
        for side in doubts:
            found = first_earlier(left, position) if side is _Side.EARLIER else first_later(left, position)
            found = _apart(found, dimensions, leaves) if late else found
            if not found.is_empty():
                left_over = barriers.left(instances, leaves, position, side)
                racing = left_over.apply_domain(begun).apply_range(ended)
                racing = racing.intersect(times_at(found))
                if not racing.is_empty():
                    return _witness(racing, begun, ended, instances)
        if dimensions[position] not in _PLACES:
            left = equal(left, position)
    if decided or left.is_empty():
        return None
    found = _apart(left, dimensions, leaves) if late else left
    return None if found.is_empty() else _witness(times.intersect(times_at(found)), begun, ended, instances)


def _is_apart_on_all_threads(
    instances: isl.Map,
    leaves: tuple[ThreadLeaf, ThreadLeaf],
    dimensions: Items[Concurrency],
    doubt: tuple[int, list[_Side]],
) -> bool:
    """Whether nothing comes to the one dimension in doubt, whatever the threads are: they count in unlike ways."""
    doubtful, sides = doubt
    without = tuple(n for n, sort in enumerate(dimensions) if sort is not Concurrency.THREADS)
    begun, ended = (leaf.times.along(without) for leaf in leaves)
    sorts = [dimensions[position] for position in without]
    inside, end = sum(n < _inside_kernels(*leaves) for n in without), without.index(doubtful)
    left = _in_one_block(distances_of(instances.apply_domain(begun).apply_range(ended)), sorts, inside)
    for position in range(inside, end):
        left = left if sorts[position] in _PLACES else equal(left, position)
    return all((first_earlier if side is _Side.EARLIER else first_later)(left, end).is_empty() for side in sides)


class _Barriers:
    """The barriers of an execution, for instances that only other iterations have barriers between."""

    def __init__(self, scop: Scop, execution: Execution) -> None:
        self.dimensions: Final = execution.dimensions
        self._times: Final = [leaf.times.whole for leaf in execution.places if leaf.statement in scop.barrier_names]

    def left(self, pairs: isl.Map, leaves: tuple[ThreadLeaf, ThreadLeaf], position: int, side: _Side) -> isl.Map:
        """The pairs of instances but those with a barrier after the earlier end, or before the later one.

        ``leaves``: where the ends are; ``side``: which is the earlier one in this dimension.  The barriers are in loops
        further inside, in other iterations.  isl is asked for all of these, so this is for what is a race otherwise.
        """
        if not self._times:
            return pairs
        reached = reduce(isl.Set.union, (times.range() for times in self._times))
        further = isl.Map.empty(reached.get_space().map_from_set())
        for inside in range(position + 1, len(self.dimensions)):
            if self.dimensions[inside] is Concurrency.ORDERED:
                further = further.union(later_in(reached.get_space(), inside))
        if side is _Side.LATER:
            further = further.reverse()
        first, second = (leaf.times.whole for leaf in leaves)
        pairs = pairs.intersect_domain(first.subtract_range(reached.apply(further.reverse())).domain())
        return pairs.intersect_range(second.subtract_range(reached.apply(further)).domain())


# Dimensions that say where instances run, and not when.
_PLACES: Final = (Concurrency.BLOCKS, Concurrency.THREADS)


def _inside_kernels(first: ThreadLeaf, second: ThreadLeaf) -> int:
    """The first dimension that does not say which kernel it is, or for which step that was launched."""
    return min(first.kernel, second.kernel)


class _Side(Enum):
    """Which of two instances a dimension of time puts before the other."""

    EARLIER = "the first one"
    LATER = "the second one"


def _doubtful(
    first: ThreadLeaf, second: ThreadLeaf, dimensions: Items[Concurrency]
) -> tuple[Mapping[int, list[_Side]], bool]:
    """Dimensions that tell instances apart which no barrier separates then, and whether one tells all of them apart.

    This follows from where the two statements stand, and costs nothing.
    """
    doubtful: dict[int, list[_Side]] = {}
    for position, sort in enumerate(dimensions):
        begin, end = first.times.fixed[position], second.times.fixed[position]
        order = None if begin is None or end is None else (begin > end) - (begin < end)
        if sort in _PLACES or position < _inside_kernels(first, second):
            if order in (-1, 1) and sort is not Concurrency.THREADS:
                return doubtful, True  # in other blocks, or in other kernels
            continue
        if order in (None, -1) and not _separated(first, second, position, (begin, end)):
            doubtful.setdefault(position, []).append(_Side.EARLIER)
        if order in (None, 1) and not _separated(second, first, position, (end, begin)):
            doubtful.setdefault(position, []).append(_Side.LATER)
        if order in (-1, 1):
            return doubtful, True
    return doubtful, False


def _of_sides(doubtful: Mapping[int, list[_Side]], sides: Items[_Side]) -> Mapping[int, list[_Side]]:
    kept = {position: [side for side in own if side in sides] for position, own in doubtful.items()}
    return {position: own for position, own in kept.items() if own}


def _in_different_kernels(first: ThreadLeaf, second: ThreadLeaf) -> bool:
    for position in range(_inside_kernels(first, second)):
        begin, end = first.times.fixed[position], second.times.fixed[position]
        if begin is not None and end is not None and begin != end:
            return True
    return False


def _in_one_block(distances: isl.Set, dimensions: Items[Concurrency], inside: int) -> isl.Set:
    """Distances in one kernel, and on one block, but for the threads that the ends run on.

    ``inside``: as ``_inside_kernels`` says.  Kernels run one after the other, and what blocks do is checked elsewhere.
    """
    for position, sort in enumerate(dimensions):
        if sort is Concurrency.BLOCKS or position < inside:
            distances = equal(distances, position)
    return distances


def _apart(distances: isl.Set, dimensions: Items[Concurrency], leaves: tuple[ThreadLeaf, ThreadLeaf]) -> isl.Set:
    """Those of which another thread has a part: all of them, where one end reads for the lanes of its warp."""
    by_warp = any(leaf.by_warp for leaf in leaves)
    return distances if by_warp else _on_different_threads(distances, dimensions)


def _on_different_threads(distances: isl.Set, dimensions: Items[Concurrency]) -> isl.Set:
    """Those between different threads."""
    apart = isl.Set.empty(distances.get_space())
    for position, sort in enumerate(dimensions):
        if sort is not Concurrency.THREADS:
            continue
        for different in (first_earlier(distances, position), first_later(distances, position)):
            if not different.is_empty():
                apart = apart.union(different)
        distances = equal(distances, position)
    return apart


def _separated(earlier: ThreadLeaf, later: ThreadLeaf, position: int, ends: tuple[int | None, int | None]) -> bool:
    """Whether a barrier lies between instances that a dimension of time tells apart; ``ends``: its values, if fixed."""
    if earlier.after[position] or later.before[position]:
        return True
    begin, end = ends
    if begin is None or end is None:
        return False
    return any(begin < barrier < end for barrier in earlier.barriers[position] & later.barriers[position])


def _witness(times: isl.Map, begun: isl.Map, ended: isl.Map, instances: isl.Map) -> Counterexample:
    """One of the instances that have such times, which may not be all of them."""
    pairs = times.apply_domain(begun.reverse()).apply_range(ended.reverse())
    pairs = pairs.intersect(instances)
    return Counterexample(Violation.RACE, pair_text(isl.UnionMap.from_map(pairs)))
