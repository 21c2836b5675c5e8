"""Barriers in a loop tree: where they stand, and whether every thread of a block gets there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, assert_never

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
    variables,
)

# What stands above a statement: a position in a block, a loop, or a guard and which of its branches was taken.
Step: TypeAlias = int | Loop | Allocation | tuple[IndexExpression, bool]


def barriers_along(
    tree: LoopTree, path: tuple[Step, ...], barriers: frozenset[str]
) -> tuple[tuple[int, frozenset[int]] | None, ...]:
    """For every step that takes time: None for a loop, else the position in a block and those of barriers in it."""
    found: list[tuple[int, frozenset[int]] | None] = []
    for step in path:
        match tree:
            case Block(children):
                assert isinstance(step, int)
                waiting = (n for n, c in enumerate(children) if isinstance(c, Instance) and c.statement in barriers)
                found.append((step, frozenset(waiting)))
                tree = children[step]
            case Guard(_, then, otherwise):
                assert isinstance(step, tuple)
                tree = then if step[1] or otherwise is None else otherwise
            case Loop():
                found.append(None)
                tree = tree.body
            case Allocation():
                tree = tree.body
            case Instance():
                raise AssertionError("the path ends at the statement")
            case _:
                assert_never(tree)
    return tuple(found)


def divergent_barriers(root: LoopTree, barriers: frozenset[str]) -> tuple[str, ...]:
    """Barriers that some thread may miss: a loop or a guard around them depends on the thread."""
    return tuple(name for name, path in _around_barriers(root, barriers, ()) if _diverges(path))


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
    nest = root.children[path[0]] if isinstance(root, Block) and isinstance(path[0], int) else root
    every = list(_thread_loops(nest, 1))
    # The hardware counts along x first, from one end of a block to the other.
    lengths = [loop.upper for depth, loop in every if depth == len(threads)]
    counted = [length.value + 1 for length in lengths if isinstance(length, IndexLiteral)]
    innermost = all(depth <= len(threads) for depth, _ in every)
    whole = len(counted) == len(lengths) and max(counted, default=0) % LANES == 0
    return WarpPlace(threads[-1] if threads else None, lane, alone, innermost and (len(threads) == 1 or whole))


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


def _diverges(path: tuple[Loop | Guard, ...]) -> bool:
    threads: set[str] = set()
    for step in path:
        if isinstance(step, Guard):
            if variables(step.condition) & threads:
                return True
            continue
        if (variables(step.lower) | variables(step.upper)) & threads:
            return True
        if step.kind is LoopKind.THREAD:
            threads.add(step.iterator)
            if not _is_whole(step):
                return True
    return False


def _is_whole(loop: Loop) -> bool:
    return loop.lower == IndexLiteral(0) and isinstance(loop.upper, IndexLiteral) and loop.step == 1


def _around_barriers(
    tree: LoopTree, barriers: frozenset[str], path: tuple[Loop | Guard, ...]
) -> Iterator[tuple[str, tuple[Loop | Guard, ...]]]:
    match tree:
        case Instance(statement, _):
            if statement in barriers:
                yield statement, path
        case Loop():
            yield from _around_barriers(tree.body, barriers, (*path, tree))
        case Guard():
            yield from _around_barriers(tree.then, barriers, (*path, tree))
            if tree.otherwise is not None:
                yield from _around_barriers(tree.otherwise, barriers, (*path, tree))
        case Block(children):
            for child in children:
                yield from _around_barriers(child, barriers, path)
        case Allocation(_, body):
            yield from _around_barriers(body, barriers, path)
