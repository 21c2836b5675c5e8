"""Proof of rotating buffers (double or multiple buffering) and of asynchronous copies.

Two iterations that use the same slot are ordered: all accesses of the earlier one come first.  An asynchronous copy is
complete at a barrier: each barrier commits the copies since the last one as a group, and waits for all but the latest
groups.  So a copy is complete at the instance of its barrier that many instances after its group was committed, for all
threads of the block, and every reader must come later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from tc.polyhedral.analysis.extents import later_in
from tc.polyhedral.ir.counterexample import point_text
from tc.polyhedral.ir.scop import Promotion, Scop


def slot_pairs(scop: Scop, promotion: Promotion) -> Iterator[isl.Map]:
    """Pairs of instances of different iterations at one place of a slot, at least one writing; the earlier first."""
    if promotion.rotation is None:
        return
    accesses = _accesses(scop, promotion)
    for first in accesses:
        order = _order(first, first.depth - 1)
        for second in accesses:
            if first.writes or second.writes:
                yield _pairs(first, order, second)


def awaited_pairs(scop: Scop, promotion: Promotion) -> tuple[str | None, tuple[isl.Map, ...]]:
    """Pairs of instances of which the first must run earlier on every thread, so that what is copied has arrived.

    The ends of the first two are on one block.  Instead of them, the name of a copy that is never waited for, or of a
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
        ends = done.range()
        if not ends.is_subset(barriers):
            return point_text(isl.UnionSet.from_set(ends.subtract(barriers))), ()
    (load,) = _accesses(scop, promotion, promotion.loads)
    if not load.instances.is_subset(done.domain()):
        return promotion.loads, ()
    order = _order(load, 0)
    for access in _accesses(scop, promotion):
        # What only reads, in a later iteration, does so behind what was written there in that iteration.
        if access.writes:
            needed.append(done.reverse().apply_range(_pairs(load, order, access)))
        if access.location is not load.location:
            needed.append(done.reverse().apply_range(load.location.apply_range(access.location.reverse())))
    return None, tuple(needed)


@dataclass(frozen=True)
class _Access:
    """One to the buffer: ``place``: ``{ instance -> [prefix, subscripts] }``, of which ``depth`` are the prefix."""

    location: isl.Map
    place: isl.Map
    depth: int
    writes: bool

    @property
    def instances(self) -> isl.Set:
        return self.location.domain()


def _accesses(scop: Scop, promotion: Promotion, statement: str | None = None) -> tuple[_Access, ...]:
    """Those to the buffer, of one statement or of all."""
    return tuple(
        _Access(access.location, access.prefix.flat_range_product(access.place), access.depth, access.writes)
        for own in scop.statements
        for access in own.promoted
        if access.buffer == promotion.buffer.name and statement in (None, own.name)
    )


def _order(access: _Access, since: int) -> isl.Map:
    """``{ [prefix, subscripts] -> [prefix, subscripts] }``: one place of the array, later in the loops of the prefix.

    The outer ones of them, so many, are in the same iteration.
    """
    places = access.place.get_space().range().map_from_set()
    if since == access.depth - 1:  # one way to be later, and not one for every member
        order = later_in(access.place.get_space().range(), since)
    else:
        order = isl.Map.lex_lt_first(places, access.depth)
    for position in (*range(since), *range(access.depth, access.place.dim(isl.dim_type.out))):
        order = order.equate(isl.dim_type.in_, position, isl.dim_type.out, position)
    return order


def _pairs(first: _Access, order: isl.Map, second: _Access) -> isl.Map:
    """Pairs of instances whose places are in this order."""
    return first.place.apply_range(order).apply_range(second.place.reverse())
