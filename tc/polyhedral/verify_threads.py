"""The proof that the threads of a block do not race: what they share is ordered by barriers.

Threads run at the same time, except that all of them wait at a barrier.  Take two instances on different threads of a
block that touch one place, one of them writing, and the first dimension of their time, inside of the threads, that
tells them apart.  They are ordered if a barrier lies between their places in a sequence, or follows the earlier one in
its iteration, or precedes the later one in its own: every thread runs the same barriers in the same order, because no
loop or guard around a barrier depends on the thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from enum import Enum
from itertools import combinations_with_replacement

import islpy as isl

from tc.polyhedral.counterexample import Counterexample, Violation, pair_text
from tc.polyhedral.execution import Concurrency, Execution, ThreadLeaf
from tc.polyhedral.scop import Scop


def check_threads(
    scop: Scop, execution: Execution, conflicts: Items[tuple[isl.UnionMap, bool]]
) -> Counterexample | None:
    """The first race, or None.

    ``conflicts``: pairs of instances that touch one element, and whether the first of them must run first.
    """
    for barrier in execution.divergent:
        return Counterexample(Violation.DIVERGENT, barrier)
    if not execution.places:
        return None
    for pairs, strict in (*conflicts, *((pairs, False) for pairs in _reuses(scop))):
        for instances in _maps(pairs):
            ends = [instances.get_tuple_name(side) for side in (isl.dim_type.in_, isl.dim_type.out)]
            for first in execution.places:
                for second in execution.places:
                    if [first.statement, second.statement] == ends:
                        found = _race(instances, first, second, execution.dimensions, strict=strict)
                        if found is not None:
                            return found
    return None


def _maps(union: isl.UnionMap) -> list[isl.Map]:
    maps: list[isl.Map] = []
    union.foreach_map(maps.append)
    return maps


def _reuses(scop: Scop) -> Iterator[isl.UnionMap]:
    """Pairs of accesses to one place of shared memory, whatever it stands for at the time, at least one writing."""
    for promotion in scop.promotions:
        if not promotion.buffer.shared:
            continue
        places = [
            (access.place, access.writes)
            for statement in scop.statements
            for access in statement.promoted
            if access.buffer == promotion.buffer.name
        ]
        for (place, writes), (other, other_writes) in combinations_with_replacement(places, 2):
            if writes or other_writes:
                yield isl.UnionMap.from_map(place.apply_range(other.reverse()))


def _race(
    instances: isl.Map, first: ThreadLeaf, second: ThreadLeaf, dimensions: Items[Concurrency], *, strict: bool
) -> Counterexample | None:
    doubtful, decided = _doubtful(first, second, dimensions, strict=strict)
    if decided and not doubtful:
        return None
    apart = _on_different_threads(instances, first, second, dimensions)
    for position in range(dimensions.index(Concurrency.THREADS), len(dimensions)):
        if apart.is_empty():
            return None
        here = (isl.dim_type.in_, position, isl.dim_type.out, position)
        for side in doubtful.get(position, ()):
            found = apart.order_lt(*here) if side is _Side.EARLIER else apart.order_gt(*here)
            if not found.is_empty():
                reordered = strict and side is _Side.LATER
                return _witness(Violation.REORDERED if reordered else Violation.RACE, found, first, second)
        if dimensions[position] not in (Concurrency.BLOCKS, Concurrency.THREADS):
            apart = apart.equate(*here)
    return None if apart.is_empty() else _witness(Violation.RACE, apart, first, second)


class _Side(Enum):
    """Which of two instances a dimension of time puts before the other."""

    EARLIER = "the first one"
    LATER = "the second one"


def _doubtful(
    first: ThreadLeaf, second: ThreadLeaf, dimensions: Items[Concurrency], *, strict: bool
) -> tuple[Mapping[int, list[_Side]], bool]:
    """Dimensions that tell instances apart which no barrier separates then, and whether one tells all of them apart.

    This follows from where the two statements stand, and costs nothing.
    """
    doubtful: dict[int, list[_Side]] = {}
    for position, sort in enumerate(dimensions):
        begin, end = (_fixed(leaf.times, position) for leaf in (first, second))
        order = None if begin is None or end is None else (begin > end) - (begin < end)
        if sort in (Concurrency.BLOCKS, Concurrency.THREADS) or position < dimensions.index(Concurrency.THREADS):
            if order in (-1, 1) and sort is not Concurrency.THREADS:
                return doubtful, True  # in other blocks, or in other kernels
            continue
        if order in (None, -1) and not _separated(first, second, position, (begin, end)):
            doubtful.setdefault(position, []).append(_Side.EARLIER)
        if order in (None, 1) and (strict or not _separated(second, first, position, (end, begin))):
            doubtful.setdefault(position, []).append(_Side.LATER)
        if order in (-1, 1):
            return doubtful, True
    return doubtful, False


def _on_different_threads(
    instances: isl.Map, first: ThreadLeaf, second: ThreadLeaf, dimensions: Items[Concurrency]
) -> isl.Map:
    """Pairs of times of these instances on different threads of one block, in one kernel."""
    pairs = instances.apply_domain(first.times).apply_range(second.times)
    threads = [position for position, sort in enumerate(dimensions) if sort is Concurrency.THREADS]
    for position, sort in enumerate(dimensions):
        # Kernels run one after the other, and what blocks do is checked elsewhere.
        if sort is Concurrency.BLOCKS or position < threads[0]:
            pairs = pairs.equate(isl.dim_type.in_, position, isl.dim_type.out, position)
    apart = isl.Map.empty(pairs.get_space())
    for position in threads:
        here = (isl.dim_type.in_, position, isl.dim_type.out, position)
        for different in (pairs.order_lt(*here), pairs.order_gt(*here)):
            if not different.is_empty():
                apart = apart.union(different)
        pairs = pairs.equate(*here)
    return apart


def _separated(earlier: ThreadLeaf, later: ThreadLeaf, position: int, ends: tuple[int | None, int | None]) -> bool:
    """Whether a barrier lies between instances that a dimension of time tells apart; ``ends``: its values, if fixed."""
    if earlier.after[position] or later.before[position]:
        return True
    begin, end = ends
    if begin is None or end is None:
        return False
    return any(begin < barrier < end for barrier in earlier.barriers[position] & later.barriers[position])


def _fixed(times: isl.Map, position: int) -> int | None:
    """The value of a dimension where all instances plainly have the same."""
    value = times.plain_get_val_if_fixed(isl.dim_type.out, position)
    return int(value.to_python()) if value.is_int() else None


def _witness(violation: Violation, times: isl.Map, first: ThreadLeaf, second: ThreadLeaf) -> Counterexample:
    pairs = times.apply_domain(first.times.reverse()).apply_range(second.times.reverse())
    return Counterexample(violation, pair_text(isl.UnionMap.from_map(pairs)))
