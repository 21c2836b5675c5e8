"""Barriers in a loop tree: where they stand, and whether every thread of a block gets there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import islpy as isl

from tc.polyhedral.extents import with_all_values
from tc.polyhedral.loops import (
    LANES,
    Allocation,
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
)
from tc.polyhedral.ranges import Range, Ranges, always_runs, iterator_range

# What stands above a statement: a position in a block, a loop, or a guard and which of its branches was taken.
Step: TypeAlias = int | Loop | Allocation | tuple[IndexExpression, bool]


def barriers_along(
    tree: LoopTree, path: tuple[Step, ...], barriers: frozenset[str]
) -> tuple[tuple[int, frozenset[int]] | None, ...]:
    """For every step that takes time: None for a loop, else the position in a block and those that run barriers."""
    found: list[tuple[int, frozenset[int]] | None] = []
    iterators: dict[str, Range] = {}
    for step in path:
        match tree:
            case Block(children):
                assert isinstance(step, int)
                waiting = (n for n, child in enumerate(children) if _runs_barrier(child, barriers, iterators))
                found.append((step, frozenset(waiting)))
                tree = children[step]
            case Guard(_, then, otherwise):
                assert isinstance(step, tuple)
                tree = then if step[1] or otherwise is None else otherwise
            case Loop():
                found.append(None)
                iterators[tree.iterator] = iterator_range(tree, iterators)
                tree = tree.body
            case Allocation():
                tree = tree.body
            case Instance():
                raise AssertionError("the path ends at the statement")
            case _:
                assert_never(tree)
    return tuple(found)


def _runs_barrier(tree: LoopTree, barriers: frozenset[str], iterators: Ranges) -> bool:
    """Whether every run of the loops has a barrier in it: then they separate what runs before them from what follows.

    ``iterators``: of the loops around them.
    """
    match tree:
        case Instance(statement):
            return statement in barriers
        case Block(children):
            return any(_runs_barrier(child, barriers, iterators) for child in children)
        case Guard(_, then, otherwise):
            branches = (then, otherwise)
            return all(branch is not None and _runs_barrier(branch, barriers, iterators) for branch in branches)
        case Allocation(body=body):
            return _runs_barrier(body, barriers, iterators)
        case Loop():
            inside = {**iterators, tree.iterator: iterator_range(tree, iterators)}
            return _runs_barrier(tree.body, barriers, inside) and always_runs(tree, iterators)
        case _:
            assert_never(tree)


def is_met_by_all(root: LoopTree, path: tuple[Step, ...], points: isl.Set) -> bool:
    """Whether all threads of a block run every iteration of a place that one of them runs.

    ``points``: the iterations of the loops on the path.
    """
    loops = [step for step in path if isinstance(step, Loop)]
    lengths = _lengths(_nest(root, path))
    every = points
    for depth, position in enumerate(p for p, loop in enumerate(loops) if loop.kind is LoopKind.THREAD):
        length = lengths[depth]
        if length is None:
            return False
        every = with_all_values(every, position, isl.Val.int_from_si(points.get_ctx(), length - 1))
    return bool(every.reset_tuple_id().is_subset(points.reset_tuple_id()))


def _nest(root: LoopTree, path: tuple[Step, ...]) -> LoopTree:
    """What one launch runs."""
    return root.children[path[0]] if isinstance(root, Block) and isinstance(path[0], int) else root


def _lengths(nest: LoopTree) -> list[int | None]:
    """The threads of a block along the loops over them, outermost first; None where that is no number."""
    found: list[int | None] = []
    for depth, loop in _thread_loops(nest, 0):
        found += [0] if depth == len(found) else []
        known, length = found[depth], loop.upper.value + 1 if isinstance(loop.upper, IndexLiteral) else None
        found[depth] = None if known is None or length is None else max(known, length)
    return found


@dataclass(frozen=True, slots=True)
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


def warp_place(root: LoopTree, path: tuple[Step, ...]) -> WarpPlace:
    """What the path from the root says to a warp."""
    loops = [step for step in path if isinstance(step, Loop)]
    threads = [position for position, loop in enumerate(loops) if loop.kind is LoopKind.THREAD]
    lane = next((position for position, loop in enumerate(loops) if loop.kind is LoopKind.LANES), None)
    alone = lane is not None and isinstance(loops[lane].body, Instance) and _counts(loops[lane], LANES)
    # The hardware counts along x first, from one end of a block to the other.
    lengths = _lengths(_nest(root, path))
    along = lengths[-1] if lengths else None
    whole = len(threads) == 1 or (along is not None and along % LANES == 0)
    return WarpPlace(threads[-1] if threads else None, lane, alone, len(threads) == len(lengths) and whole)


def _counts(loop: Loop, count: int) -> bool:
    return (loop.lower, loop.upper, loop.step) == (IndexLiteral(0), IndexLiteral(count - 1), 1)


def _thread_loops(tree: LoopTree, depth: int) -> Iterator[tuple[int, Loop]]:
    """The loops over threads, and how many of them each is inside of, itself among them."""
    match tree:
        case Instance():
            return
        case Loop(kind=LoopKind.THREAD):
            yield depth, tree
            yield from _thread_loops(tree.body, depth + 1)
        case Loop(body=body) | Allocation(body=body):
            yield from _thread_loops(body, depth)
        case Guard(_, then, otherwise):
            yield from _thread_loops(then, depth)
            if otherwise is not None:
                yield from _thread_loops(otherwise, depth)
        case Block(children):
            for child in children:
                yield from _thread_loops(child, depth)
        case _:
            assert_never(tree)
