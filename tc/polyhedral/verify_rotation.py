"""What the proof asks of buffers whose slots are used in turn, and of copies that end after the place where they begin.

Two iterations that have the same slot follow each other: all that happens to it in the earlier one comes first.  A copy
that ends by itself counts as done at a barrier: every barrier closes the group of copies since the last one, and
may leave the latest groups unfinished.  So a copy has ended at an instance of its barrier that comes so many instances
after its own group was closed, for all threads of the block, and whoever needs it must come later.
"""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from tc.polyhedral.counterexample import point_text
from tc.polyhedral.scop import PromotedAccess, Promotion, Scop


def slot_pairs(scop: Scop, promotion: Promotion) -> Iterator[isl.Map]:
    """Pairs of instances of different iterations at one place of a slot, at least one writing; the earlier first."""
    if promotion.rotation is None:
        return
    accesses = _accesses(scop, promotion)
    for first in accesses:
        for second in accesses:
            if first.writes or second.writes:
                yield _later(first, second, first.depth - 1)


def awaited_pairs(scop: Scop, promotion: Promotion) -> tuple[str | None, tuple[isl.Map, ...]]:
    """Pairs of instances of which the first must run earlier on every thread, so that what is copied has arrived.

    The ends of the first two are on one block.  Instead of them, the name of a copy that nobody waits for, or of a
    barrier that is not there.
    """
    assert promotion.loads is not None
    found = scop.awaits.get(promotion.loads)
    if found is None:
        return promotion.loads, ()
    barriers = isl.Set.empty(found.first.range().get_space())
    for barrier in scop.barriers:
        if barrier.get_tuple_name() == found.barrier:
            barriers = barrier
    done = found.first
    needed = [found.first, found.next.intersect_domain(barriers).intersect_range(barriers)]
    for turn in range(found.pending + 1):
        done = done.apply_range(found.next) if turn else done
        absent = done.range().subtract(barriers)
        if not absent.is_empty():
            return point_text(isl.UnionSet.from_set(absent)), ()
    (load,) = (access for access in _accesses(scop, promotion, promotion.loads))
    if not load.location.domain().is_subset(done.domain()):
        return promotion.loads, ()
    for access in _accesses(scop, promotion):
        # What only reads, in a later iteration, does so behind what was written there in that iteration.
        if access.writes:
            needed.append(done.reverse().apply_range(_later(load, access, 0)))
        if access is not load:
            needed.append(done.reverse().apply_range(load.location.apply_range(access.location.reverse())))
    return None, tuple(needed)


def _accesses(scop: Scop, promotion: Promotion, statement: str | None = None) -> tuple[PromotedAccess, ...]:
    """Those to the buffer, of one statement or of all."""
    return tuple(
        access
        for own in scop.statements
        for access in own.promoted
        if access.buffer == promotion.buffer.name and statement in (None, own.name)
    )


def _later(first: PromotedAccess, second: PromotedAccess, since: int) -> isl.Map:
    """Pairs at one place of the array, the second end later in the loops of the prefix, of which the outer ones, so
    many, are in the same iteration.
    """
    ends = [access.prefix.flat_range_product(access.place) for access in (first, second)]
    order = isl.Map.lex_lt_first(ends[0].get_space().range().map_from_set(), first.depth)
    for position in (*range(since), *range(first.depth, ends[0].dim(isl.dim_type.out))):
        order = order.equate(isl.dim_type.in_, position, isl.dim_type.out, position)
    return ends[0].apply_range(order).apply_range(ends[1].reverse())
