"""Barriers in a loop tree: their positions, and whether every thread of a block reaches them."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import TypeAlias

import islpy as isl

from tc.base.frozen import frozen
from tc.polyhedral.analysis.extents import outermost, with_all_values
from tc.polyhedral.ir.loops import (
    LANES,
    Allocation,
    IndexExpression,
    IndexLiteral,
    Instance,
    Loop,
    LoopKind,
    Matrices,
)

# What stands above a statement: a position in a block, a loop, matrix instructions, or a guard and which of its
# branches was taken.
Step: TypeAlias = int | Loop | Allocation | Matrices | tuple[IndexExpression, bool]


@dataclass(frozen=True)
class Place:
    """A place in loops: the path from the root, and the iterations of the loops on it."""

    path: tuple[Step, ...]
    points: isl.Set


def barriers_along(place: Place, barriers: Items[Place]) -> tuple[tuple[int, frozenset[int]] | None, ...]:
    """For every step of the path that takes time: None for a loop, else the position in a block and those of barriers.

    A child of a block counts as a barrier if it runs one, at whatever place in it, in every iteration of the loops
    around the block in which the path goes on.  ``barriers``: the places of all.
    """
    found: list[tuple[int, frozenset[int]] | None] = []
    loops = 0
    for depth, step in enumerate(place.path):
        if isinstance(step, Loop):
            found.append(None)
            loops += 1
        elif isinstance(step, int):
            inside = [b for b in barriers if len(b.path) > depth and b.path[:depth] == place.path[:depth]]
            children = {b.path[depth]: [c for c in inside if c.path[depth] == b.path[depth]] for b in inside}
            waiting = (n for n, own in children.items() if isinstance(n, int) and _always_met(own, place, loops))
            found.append((step, frozenset(waiting)))
    return tuple(found)


def _always_met(barriers: Items[Place], place: Place, loops: int) -> bool:
    """Whether one of the barriers is in every iteration of the outermost loops, so many, that gets to the place."""
    met = outermost(barriers[0].points, loops)
    for other in barriers[1:]:
        met = met.union(outermost(other.points, loops))
    own = outermost(place.points, loops)
    return bool(own.plain_is_equal(met) or own.is_subset(met))


def is_met_by_all(place: Place, threads: Items[int]) -> bool:
    """Whether all threads of a block run every iteration of a place that one of them runs."""
    points, loops = place.points, [step for step in place.path if isinstance(step, Loop)]
    every = points
    along = (position for position, loop in enumerate(loops) if loop.kind is LoopKind.THREAD)
    for length, position in zip(threads, along, strict=False):
        every = with_all_values(every, position, isl.Val.int_from_si(points.get_ctx(), length - 1))
    return bool(every.reset_tuple_id().is_subset(points.reset_tuple_id()))


@frozen
class WarpPlace:
    """A place in loops as the lanes of a warp see it.

    ``x``, ``lane``: the positions of the loop over threads along x, and of the one over lanes, among all loops; None
    where there is none.  ``alone``: nothing but the place is in that loop, which is over all lanes.  ``aligned``:
    threads of a warp differ in x only.
    """

    x: int | None
    lane: int | None
    alone: bool
    aligned: bool


def warp_place(path: tuple[Step, ...], lengths: Items[int]) -> WarpPlace:
    """What the path from the root says to a warp; ``lengths``: of its block, in threads."""
    loops = [step for step in path if isinstance(step, Loop)]
    threads = [position for position, loop in enumerate(loops) if loop.kind is LoopKind.THREAD]
    lane = next((position for position, loop in enumerate(loops) if loop.kind is LoopKind.LANES), None)
    alone = lane is not None and isinstance(loops[lane].body, Instance) and _counts(loops[lane], LANES)
    # The hardware counts along x first, from one end of a block to the other.
    whole = len(threads) == 1 or (bool(lengths) and lengths[-1] % LANES == 0)
    return WarpPlace(threads[-1] if threads else None, lane, alone, len(threads) == len(lengths) and whole)


def _counts(loop: Loop, count: int) -> bool:
    return (loop.lower, loop.upper, loop.step) == (IndexLiteral(0), IndexLiteral(count - 1), 1)
