"""Mapping to blocks and threads (paper, Section 5.4).

Tiles of the outermost coincident loops go to blocks, the points of a tile to the threads of a block.  Where an
instance runs are further dimensions of its time, outside of all others: the loops that remain below say what one thread
does, and in what order.  Nothing is said twice: a tile that a block has to itself leaves no loop behind.

Every outermost nest becomes a kernel of its own.  One with no coincident loop runs on a single thread.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import Final, assert_never

import islpy as isl

from tc.errors import OptionsError
from tc.options import Distribution
from tc.polyhedral.extents import extent_of
from tc.polyhedral.loops import LoopKind
from tc.polyhedral.tile import WHOLE, ChooseCuts, Cut, is_counted
from tc.polyhedral.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence

# Grids and blocks have so many dimensions at most.
DIMENSIONS: Final = 3
# Threads of a block along x and y for a nest that nobody has tuned: a warp reads neighbours.
ROW: Final = 256
TILE: Final = (32, 8)


@dataclass(frozen=True, slots=True)
class Grid:
    """The most blocks of a grid and the threads of a block, along each dimension, x first.

    ``blocks`` None: as many as there are tiles.  ``threads`` None: as many as a tile has points.
    """

    blocks: tuple[int, ...] | None
    threads: tuple[int, ...] | None
    distribution: Distribution


def default_tiles(band: Band, _domain: isl.UnionSet, depth: int, _points: tuple[Member, ...]) -> tuple[Cut, ...]:
    """Tiles of one point per thread: a ``ChooseCuts``."""
    counted = [n for n, member in enumerate(band.members) if member.coincident and is_counted(member)]
    shared = counted if depth == 0 else []
    sizes = dict.fromkeys(shared[-DIMENSIONS:], 1)
    sizes |= dict(zip(reversed(shared), TILE if len(shared) > 1 else (ROW,), strict=False))
    return tuple(Cut(sizes[n]) if n in sizes else WHOLE for n in range(len(band.members)))


def map_to_grid(tree: ScheduleTree, choose: ChooseCuts, grid: Grid) -> ScheduleTree:
    """The tree with a band of blocks and threads around every outermost nest.

    ``choose``: the tile sizes, by which the nests will be tiled afterwards.  OptionsError where a block has more
    threads than a tile has points.
    """
    if tree.domain.is_empty():
        return tree
    return replace(tree, root=_Mapper(choose, grid, []).visit(tree.root, tree.domain))


def refuse_surplus_dimensions(tree: ScheduleTree, choose: ChooseCuts, grid: Grid) -> None:
    """OptionsError where the grid or its blocks have more dimensions than any nest has loops to share."""
    mapper = _Mapper(choose, grid, [])
    mapper.visit(tree.root, tree.domain)
    most = max(mapper.dimensions, default=0)
    for name, sizes in (("grid", grid.blocks), ("block", grid.threads)):
        if len(sizes or ()) > most:
            raise OptionsError(
                f"{name} has {len(sizes or ())} sizes, but at most {most} tiled loops of a nest can be shared by "
                "blocks; leave out the last ones, or tile more loops"
            )


@dataclass(frozen=True, slots=True)
class _Mapper:
    """``dimensions``: how many loops each nest so far shares."""

    choose: ChooseCuts
    grid: Grid
    dimensions: list[int]

    def visit(self, node: Node, domain: isl.UnionSet) -> Node:
        match node:
            case Leaf():
                return _around(node, domain, [], [])
            case Sequence(filters):
                branches = (replace(f, child=self.visit(f.child, domain.intersect(f.domain))) for f in filters)
                return Sequence(tuple(branches))
            case Band():
                return self.band(node, domain)
            case Extension():
                raise AssertionError("buffers are placed in mapped trees, so mapping comes first")
            case _:
                assert_never(node)

    def band(self, band: Band, domain: isl.UnionSet) -> Node:
        cuts = self.choose(band, domain, 0, ())
        tiled = [(m, cut.size) for m, cut in zip(band.members, cuts, strict=True) if m.coincident and cut != WHOLE]
        shared = tiled[-DIMENSIONS:][::-1]  # x first
        self.dimensions.append(len(shared))
        blocks = [self.block(m, size, domain, number) for number, (m, size) in enumerate(shared)]
        threads = [self.thread(m, size, number) for number, (m, size) in enumerate(shared)]
        return _around(band, domain, blocks, threads)

    def block(self, member: Member, size: int, domain: isl.UnionSet, dimension: int) -> Member:
        """The tiles one after another, again from the first block on where there are more of them than blocks."""
        context = domain.get_ctx()
        tile = member.function.scale_down_val(isl.Val.int_from_si(context, size)).floor()
        first = tile.intersect_domain(domain).min_val()
        number = tile.sub(isl.UnionPwAff.val_on_domain(tile.domain(), first))
        most = _at(self.grid.blocks, dimension)
        if most is not None and extent_of(number, domain) > most:
            number = number.mod_val(isl.Val.int_from_si(context, most))
        return Member(number, coincident=True, kind=LoopKind.BLOCK)

    def thread(self, member: Member, size: int, dimension: int) -> Member:
        """The points of a tile, dealt out one by one or in runs."""
        context = member.function.get_ctx()
        threads = _at(self.grid.threads, dimension)
        if threads is None:
            threads = size
        if threads > size:
            raise OptionsError(
                f"a block has {threads} threads along dimension {dimension}, but a tile only {size} points; make the "
                "tile larger or the block smaller"
            )
        point = member.function.mod_val(isl.Val.int_from_si(context, size))
        match self.grid.distribution:
            case Distribution.CYCLIC:
                number = point.mod_val(isl.Val.int_from_si(context, threads))
            case Distribution.BLOCKED:
                number = point.scale_down_val(isl.Val.int_from_si(context, -(-size // threads))).floor()
            case _:
                assert_never(self.grid.distribution)
        return Member(number, coincident=True, kind=LoopKind.THREAD)


def _at(sizes: tuple[int, ...] | None, dimension: int) -> int | None:
    """The size along a dimension: 1 beyond those that are named; None where nothing is said."""
    if sizes is None:
        return None
    return sizes[dimension] if dimension < len(sizes) else 1


def _around(node: Node, domain: isl.UnionSet, blocks: Items[Member], threads: Items[Member]) -> Band:
    """The node on these blocks and threads, x first; on one of them where there are none."""
    nothing = isl.UnionPwAff.val_on_domain(domain, isl.Val.zero(domain.get_ctx()))
    members = [
        *(reversed(blocks) if blocks else [Member(nothing, coincident=True, kind=LoopKind.BLOCK)]),
        *(reversed(threads) if threads else [Member(nothing, coincident=True, kind=LoopKind.THREAD)]),
    ]
    return Band(tuple(members), permutable=True, child=node)
