"""Distribution: which loops of a nest are distributed over blocks and threads, and over how many.

Tiles of the outermost coincident loops are distributed over blocks, the points of a tile over the threads of a block.
Where tiles are single points, the innermost of these loops without a size are one tile: threads share all of their
iterations (paper, Section 5.4: the innermost permutable band goes to threads).  Where there are coincident loops inside
of these, neighbouring threads share the innermost one instead: the rows of a matrix go to blocks, and its columns to
threads, in one statement after the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final, assert_never

import islpy as isl

from tc.base.counted import counted
from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.base.grid import MOST_THREADS_ALONG
from tc.language.isl.pieces import sets_of
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.ir.loops import LANES
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, Sequence, statement_names
from tc.polyhedral.transform.digits import threads_along
from tc.polyhedral.transform.tile import OUTERMOST_FIRST, ChooseCuts, Cut, is_counted
from tc.targets.machine import GpuMachine
from tc.targets.options import Distribution

# Dimensions of an explicit block or grid.  Beyond so many, blocks and threads are linearized along x.
DIMENSIONS: Final = 3
# What messages say of the order of the sizes.
ORDER: Final = f"block and grid begin with x, the innermost of the loops that are shared; {OUTERMOST_FIRST}"


@frozen
class Grid:
    """The most blocks of a grid and the threads of a block, along each dimension, x first.

    ``blocks`` None: as many as there are tiles.  ``threads`` None: about as many as the ``machine`` has by default, or
    half as many again where all have as many points then, or as many as a tile has points; a warp of them lies along x
    where there are two loops to share.  A block has exactly the ``threads`` that are named: those beyond the points of
    a tile have none, but copy what all share.  ``row_threads``: those that
    share the rows of a nest, by statement in it, where they are more.
    """

    blocks: tuple[int, ...] | None
    threads: tuple[int, ...] | None
    distribution: Distribution
    machine: GpuMachine
    row_threads: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


@frozen
class Row:
    """A loop that threads share, and how many iterations it has, in groups or not."""

    member: Member
    extent: int


def inner_loops(node: Node, domain: isl.UnionSet) -> dict[str, Row]:
    """For the statements below, the innermost loop whose iterations may run at the same time, if there is one.

    A longer one around it is theirs where it has fewer iterations than a warp has threads.  Statements that are in a
    loop together share it, or else those that have another one inside of it share that, and there is none for the
    others: if each of them chose for itself, all threads would go through the iterations of a loop that only one of
    them has something to do in.
    """
    match node:
        case Leaf():
            return {}
        case Sequence(filters):
            return {
                name: row
                for branch in filters
                for name, row in inner_loops(branch.child, domain.intersect(branch.domain)).items()
            }
        case Band(members, _, child):
            inside = inner_loops(child, domain)
            extents = [extent_of(member.function, domain) for member in members]
            shared = [n for n, member in enumerate(members) if member.coincident and extents[n] > 1]
            if not shared:
                return inside
            last = shared[-1]
            groups = extents[last - 1] if members[last].in_group else 1
            own = Row(members[last], groups * extents[last])
            # Loops inside that have too little to do for a warp leave a longer one around them to the threads.
            longest = max((row.extent for row in inside.values()), default=0)
            return inside if longest >= min(LANES, own.extent) else dict.fromkeys(statement_names(domain), own)
        case Extension():
            raise AssertionError("buffers are placed in mapped trees, so mapping comes first")
        case _:
            assert_never(node)


def statement_of(domain: isl.UnionSet, name: str) -> isl.UnionSet:
    """The instances of one statement."""
    pieces = sets_of(domain)
    return isl.UnionSet.from_set(next(piece for piece in pieces if piece.get_tuple_name() == name))


@frozen
class Nest:
    """What blocks and threads share of a nest.

    ``tiles``: the loops whose tiles go to blocks, with the sizes of these, x first.  ``points``: those whose points go
    to threads, which also has loops that are one tile, and how they are dealt.  ``rows``: by statement, the loops
    inside that threads share.  ``threads``: along every dimension, x first; where there are rows, x is theirs.
    ``digits``: of each tiled loop, where these say which threads have which points, in the place of ``points``.
    """

    tiles: list[tuple[Member, int]]
    points: list[tuple[Member, Cut]]
    rows: Mapping[str, Row]
    threads: tuple[int, ...]
    digits: tuple[tuple[Member, Cut], ...] = ()

    @property
    def dealt(self) -> list[tuple[Member, Cut, int]]:
        """The loops whose points threads share, with their cuts, and the threads, x first."""
        counts = self.threads[1:] if self.rows else self.threads
        return [(member, cut, count) for (member, cut), count in zip(self.points, counts, strict=False)]


def nest_of(band: Band, cuts: tuple[Cut, ...], domain: isl.UnionSet, grid: Grid) -> Nest:
    """How a nest is shared; OptionsError where there are more threads along a dimension than GPUs have."""
    chosen = [(m, cut) for m, cut in zip(band.members, cuts, strict=True) if m.coincident and cut.size][::-1]
    chosen.sort(key=lambda own: own[1].last)
    if any(cut.digits for _, cut in chosen):
        return _by_digits(chosen)
    rows = inner_loops(band.child, domain)
    along_rows = [max(row.extent for row in rows.values())] if rows else []
    wished = [*(0 for _ in along_rows), *(cut.threads for _, cut in chosen)]
    sizes = [*along_rows, *(cut.size for _, cut in chosen)]
    if grid.threads is not None:
        sizes = sizes[:DIMENSIONS]
    threads: list[int] = []
    own = (grid.row_threads.get(name, 0) for name in rows)
    block = max((grid.machine.block_threads, *own))
    for dimension, size in enumerate(sizes):
        along = MOST_THREADS_ALONG[min(dimension, DIMENSIONS - 1)]
        free = max(1, min(block // math.prod(threads), along))
        most = min(size, free, grid.machine.warp if dimension == 0 and len(sizes) > 1 and not rows else free)
        further = most if dimension == 0 else min(most + most // 2, along)
        usual = wished[dimension] or (most if rows else even_threads(size, most, further))
        threads.append(usual if grid.threads is None else size_at(grid.threads, dimension))
        if threads[-1] > along:
            raise OptionsError(
                f"a block has {counted(threads[-1], 'thread')} along dimension {dimension}, where GPUs have at most "
                f"{along}; make the block smaller ({ORDER})"
            )
    while len(threads) > 1 and threads[-1] == 1 and grid.threads is None:
        threads.pop()
    return Nest([(member, cut.size) for member, cut in chosen if not cut.whole], chosen, rows, tuple(threads))


def distribution_of(cut: Cut, distribution: Distribution) -> Distribution:
    """How the points of a tile are dealt to threads along one loop; ``distribution``: as options say."""
    if distribution is not Distribution.VECTORS:
        return distribution
    return Distribution.BLOCKED if cut.blocked else Distribution.CYCLIC


def _by_digits(chosen: list[tuple[Member, Cut]]) -> Nest:
    """The nest whose tiled loops say by digits which threads have which points."""
    along: dict[int, int] = {}
    for _, cut in chosen:
        along |= threads_along(cut.digits)
    tiles = [(member, cut.size) for member, cut in chosen if not cut.whole]
    threads = tuple(along.get(axis, 1) for axis in range(max(along) + 1))
    return Nest(tiles, [], {}, threads, tuple((member, cut) for member, cut in chosen if cut.digits))


def whole_loops(choose: ChooseCuts) -> ChooseCuts:
    """The cuts in which the innermost coincident loops that are not cut are one tile each, if tiles are single points.

    Larger tiles have points for threads; what is inside of them is for each thread to go through.
    """

    def chosen(band: Band, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> tuple[Cut, ...]:
        cuts = list(choose(band, domain, depth, points))
        own = [n for n, member in enumerate(band.members) if member.coincident and is_counted(member)]
        if depth == 0 and all(cuts[position].size <= 1 for position in own):
            for position in reversed(own):
                if cuts[position].size:
                    break
                cuts[position] = Cut(extent_of(band.members[position].function, domain), whole=True)
        return tuple(cuts)

    return chosen


def even_threads(points: int, threads: int, most: int) -> int:
    """At most so many threads, such that each has as many points; up to ``most`` if it takes that."""
    found = -(-points // -(-points // threads))
    if points % found == 0:
        return found
    return next((n for n in range(most, found, -1) if points % n == 0), found)


def group_size(distribution: Distribution, threads: int, extent: int) -> int:
    """Iterations in one group: as many as there are threads, or as one thread runs in a row."""
    return -(-extent // threads) if distribution is Distribution.BLOCKED else threads


def size_at(sizes: tuple[int, ...], dimension: int) -> int:
    """The size along a dimension: 1 beyond those that are named."""
    return sizes[dimension] if dimension < len(sizes) else 1
