"""How a grid is launched: its blocks, their threads, what says which of them this is, and what threads share."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from tc.base.frozen import frozen
from tc.base.grid import MOST_BLOCKS
from tc.codegen.index.placement import shared_places
from tc.polyhedral.analysis.ranges import Ranges
from tc.polyhedral.execution.launch_sizes import launch_sizes
from tc.polyhedral.ir.loops import Buffer, LoopKind, LoopTree

# Dimensions of grids and blocks, as everybody calls them: neighbouring threads differ in x.
AXES: Final = "xyz"


@frozen
class Coordinate:
    """What says which block of a grid or which thread of a block this is, along one loop.

    ``axis``: of the hardware.  Several loops may lie along it: ``below`` is how many iterations those that vary faster
    have together, and ``wraps`` whether there are others that vary more slowly.
    """

    variable: str
    kind: LoopKind
    extent: int
    axis: int
    below: int = 1
    wraps: bool = False

    def value(self, number: str) -> str:
        """Its text in C, where ``number`` is that of the block or the thread along the axis."""
        quotient = number if self.below == 1 else f"{number} / {self.below}"
        return f"{quotient} % {self.extent}" if self.wraps else quotient


@frozen
class Launch:
    """Blocks of a grid and threads of a block, outermost loop first, and how many of these loops stand around.

    A grid of more dimensions than the hardware has lies along its first one.  ``shared``: the buffers
    that the threads of a block share, and where each begins in the ``shared_bytes`` of them.  ``fillers``: further
    threads along the outermost loop over threads, which no loop has.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: tuple[tuple[Buffer, int], ...]
    shared_bytes: int
    blocks_around: int = 0
    threads_around: int = 0
    fillers: int = 0

    def variable(self, kind: LoopKind) -> str:
        """What says which iteration of the next loop of this kind runs."""
        return self._next(kind).variable

    def extent(self, kind: LoopKind) -> int:
        """The iterations that the hardware runs of that loop."""
        return self._next(kind).extent

    def _next(self, kind: LoopKind) -> Coordinate:
        around = self.blocks_around if kind is LoopKind.BLOCK else self.threads_around
        return self._along(kind)[around]

    def inside(self, kind: LoopKind) -> Launch:
        """The launch seen from the body of that loop."""
        if kind is LoopKind.BLOCK:
            return replace(self, blocks_around=self.blocks_around + 1)
        return replace(self, threads_around=self.threads_around + 1)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """All of them, outermost first."""
        return (*self._along(LoopKind.BLOCK), *self._along(LoopKind.THREAD))

    def _along(self, kind: LoopKind) -> tuple[Coordinate, ...]:
        own = self.grid if kind is LoopKind.BLOCK else self.block
        if len(own) <= len(AXES):
            places = reversed(range(len(own)))
            found = (Coordinate(f"{kind.value}_{AXES[n]}", kind, e, n) for n, e in zip(places, own, strict=True))
            return tuple(found)
        return tuple(
            Coordinate(f"{kind.value}_{len(own) - 1 - n}", kind, extent, 0, math.prod(own[n + 1 :]), wraps=n > 0)
            for n, extent in enumerate(own)
        )

    def sizes(self, kind: LoopKind) -> tuple[int, ...]:
        """The extents of the hardware along x, y and z."""
        own = self.grid if kind is LoopKind.BLOCK else self.block
        if len(own) > len(AXES):
            own = (math.prod(own),)
            assert own[0] <= MOST_BLOCKS[0], "the loops are shared by as many blocks as a grid can have"
        if kind is LoopKind.THREAD and self.fillers:
            own = (own[0] + self.fillers, *own[1:])
        return (*reversed(own), *(1 for _ in range(len(AXES) - len(own))))


def launch_of(tree: LoopTree, ranges: Ranges) -> Launch:
    """The launch of a tree, seen from outside; without loops over blocks and threads, a single thread runs it."""
    sizes = launch_sizes(tree, ranges)
    return Launch(sizes.grid, sizes.block, *shared_places(tree))
