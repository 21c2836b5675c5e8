"""The number of blocks and threads of a launch, for the printed kernel and for the proof of its barriers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import assert_never

from tc.base.frozen import frozen
from tc.polyhedral.analysis.ranges import Ranges, iterator_range
from tc.polyhedral.ir.loops import Allocation, Block, Guard, Leaf, Loop, LoopKind, LoopTree


@frozen
class LaunchSizes:
    """Blocks of a grid and threads of a block along the loops over them, outermost first."""

    grid: tuple[int, ...]
    block: tuple[int, ...]


def launch_sizes(nest: LoopTree, ranges: Ranges) -> LaunchSizes:
    """As many blocks and threads as the loops have iterations at most; ``ranges``: of what is outside of the nest."""
    grid: dict[int, int] = {}
    block: dict[int, int] = {}
    for kind, depth, extent in _extents(nest, ranges, 0, 0):
        sizes = grid if kind is LoopKind.BLOCK else block
        sizes[depth] = max(sizes.get(depth, 1), extent)
    return LaunchSizes(tuple(grid[d] for d in sorted(grid)), tuple(block[d] for d in sorted(block)))


def _extents(tree: LoopTree, ranges: Ranges, blocks: int, threads: int) -> Iterator[tuple[LoopKind, int, int]]:
    """The loops over blocks and threads: how many of their kind are around each, and how far it goes."""
    match tree:
        case Loop(kind=LoopKind.BLOCK | LoopKind.THREAD as kind):
            values = iterator_range(tree, ranges)
            assert not math.isinf(values.most), "blocks and threads are counted"
            yield kind, blocks if kind is LoopKind.BLOCK else threads, int(values.most) + 1
            around = (blocks + 1, threads) if kind is LoopKind.BLOCK else (blocks, threads + 1)
            yield from _extents(tree.body, {**ranges, tree.iterator: values}, *around)
        case Loop():
            yield from _extents(tree.body, {**ranges, tree.iterator: iterator_range(tree, ranges)}, blocks, threads)
        case Allocation(_, body):
            yield from _extents(body, ranges, blocks, threads)
        case Block(children):
            for child in children:
                yield from _extents(child, ranges, blocks, threads)
        case Guard(_, then, otherwise):
            yield from _extents(then, ranges, blocks, threads)
            if otherwise is not None:
                yield from _extents(otherwise, ranges, blocks, threads)
        case Leaf():
            return
        case _:
            assert_never(tree)
