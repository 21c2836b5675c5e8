"""Mapping to blocks and threads (paper, Section 5.4).

Tiles of the outermost coincident loops go to blocks, the points of a tile to the threads of a block.  Where there are
coincident loops inside of these, neighbouring threads share the innermost one of every branch instead: the rows of a
matrix go to blocks, and its columns to threads, in one statement after the other.

Where an instance runs are further dimensions of its time, outside of all others: the loops that remain below say what
one thread does, and in what order.  Nothing is said twice: a tile that a block has to itself leaves no loop behind.
What remains of a loop that threads share counts from 0 for every thread.

Every outermost nest becomes a kernel of its own.  One with no coincident loop runs on a single thread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import Final, assert_never

import islpy as isl

from tc.errors import OptionsError
from tc.options import Distribution
from tc.polyhedral.extents import extent_of
from tc.polyhedral.loops import LoopKind
from tc.polyhedral.paths import paths_below
from tc.polyhedral.tile import WHOLE, ChooseCuts, Cut, in_groups, is_counted
from tc.polyhedral.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence

# Grids and blocks have so many dimensions at most.
DIMENSIONS: Final = 3
# Threads of a block that nobody has tuned; along x and y where there are two loops to share: a warp reads neighbours.
THREADS: Final = 256
TILE: Final = (32, 8)


@dataclass(frozen=True, slots=True)
class Grid:
    """The most blocks of a grid and the threads of a block, along each dimension, x first.

    ``blocks`` None: as many as there are tiles.  ``threads`` None: as many as a tile has points, 256 at most.
    """

    blocks: tuple[int, ...] | None
    threads: tuple[int, ...] | None
    distribution: Distribution


def default_tiles(band: Band, domain: isl.UnionSet, depth: int, _points: tuple[Member, ...]) -> tuple[Cut, ...]:
    """Tiles of one point per thread: a ``ChooseCuts``.

    A block takes a single iteration of the outermost loops where its threads share loops inside of them.
    """
    counted = [n for n, member in enumerate(band.members) if member.coincident and is_counted(member)]
    shared = counted if depth == 0 else []
    sizes = dict.fromkeys(shared[-DIMENSIONS:], 1)
    if not _inner_loops(band.child, domain):
        sizes |= dict(zip(reversed(shared), TILE if len(shared) > 1 else (THREADS,), strict=False))
    return tuple(Cut(sizes[n]) if n in sizes else WHOLE for n in range(len(band.members)))


def _inner_loops(node: Node, domain: isl.UnionSet) -> dict[str, Member]:
    """For every statement below, the innermost loop whose iterations may run at the same time, if there is one."""
    found: dict[str, Member] = {}
    for name, members in paths_below(node, domain):
        coincident = [m for m in members if m.coincident and extent_of(m.function, _only(domain, name)) > 1]
        if coincident:
            found[name] = coincident[-1]
    return found


def _only(domain: isl.UnionSet, name: str) -> isl.UnionSet:
    pieces: list[isl.Set] = []
    domain.foreach_set(pieces.append)
    return isl.UnionSet.from_set(next(piece for piece in pieces if piece.get_tuple_name() == name))


def map_to_grid(tree: ScheduleTree, choose: ChooseCuts, grid: Grid) -> ScheduleTree:
    """The tree with a band of blocks and threads around every outermost nest.

    ``choose``: the tile sizes, by which the nests will be tiled afterwards.  OptionsError where a block has more
    threads than a tile has points.
    """
    if tree.domain.is_empty():
        return tree
    return replace(tree, root=_Mapper(choose, grid, [], []).visit(tree.root, tree.domain))


def refuse_surplus_dimensions(tree: ScheduleTree, choose: ChooseCuts, grid: Grid) -> None:
    """OptionsError where the grid or its blocks have more dimensions than any nest has loops to share."""
    mapper = _Mapper(choose, grid, [], [])
    mapper.visit(tree.root, tree.domain)
    for name, sizes, dimensions in (
        ("grid", grid.blocks, mapper.block_dimensions),
        ("block", grid.threads, mapper.thread_dimensions),
    ):
        most = max(dimensions, default=0)
        if len(sizes or ()) > most:
            raise OptionsError(
                f"{name} has {len(sizes or ())} sizes, but at most {most} loops of a nest can be shared by "
                f"{'blocks' if name == 'grid' else 'threads'}; leave out the last ones, or tile more loops"
            )


@dataclass(frozen=True, slots=True)
class _Mapper:
    """How many loops each nest so far shares among blocks and among threads."""

    choose: ChooseCuts
    grid: Grid
    block_dimensions: list[int]
    thread_dimensions: list[int]

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
        nest = _nest(band, self.choose(band, domain, 0, ()), domain, self.grid)
        self.block_dimensions.append(len(nest.shared))
        self.thread_dimensions.append(len(nest.threads))
        blocks = [self.block(m, size, domain, number) for number, (m, size) in enumerate(nest.shared)]
        counts = nest.threads[1:] if nest.rows else nest.threads
        threads = [self.thread(m, size, n) for (m, size), n in zip(nest.shared, counts, strict=False)]
        if not nest.rows:
            return _around(band, domain, blocks, threads)
        below = replace(band, child=_in_groups(band.child, nest, self.grid.distribution))
        return _around(below, domain, blocks, [self.row(nest, domain), *threads])

    def row(self, nest: _Nest, domain: isl.UnionSet) -> Member:
        """The iterations of loops inside, in threads along x; statements without such a loop run on the first one."""
        function = isl.UnionPwAff.empty(domain.get_space())
        pieces: list[isl.Set] = []
        domain.foreach_set(pieces.append)
        for piece in pieces:
            own, name = isl.UnionSet.from_set(piece), piece.get_tuple_name()
            if name in nest.rows:
                number = self.dealt(nest.rows[name].function, nest.threads[0], nest.extents[name])
            else:
                number = isl.UnionPwAff.val_on_domain(own, isl.Val.zero(domain.get_ctx()))
            function = function.union_add(number.intersect_domain(own))
        return Member(function, coincident=True, kind=LoopKind.THREAD)

    def dealt(self, function: isl.UnionPwAff, threads: int, extent: int) -> isl.UnionPwAff:
        """The thread of each iteration of a loop of so many, one by one or in runs."""
        context = function.get_ctx()
        size = isl.Val.int_from_si(context, group_size(self.grid.distribution, threads, extent))
        match self.grid.distribution:
            case Distribution.CYCLIC:
                return function.mod_val(size)
            case Distribution.BLOCKED:
                return function.scale_down_val(size).floor().mod_val(isl.Val.int_from_si(context, threads))
            case _:
                assert_never(self.grid.distribution)

    def block(self, member: Member, size: int, domain: isl.UnionSet, dimension: int) -> Member:
        """The tiles one after another, again from the first block on where there are more of them than blocks."""
        context = domain.get_ctx()
        tile = member.function.scale_down_val(isl.Val.int_from_si(context, size)).floor()
        first = tile.intersect_domain(domain).min_val()
        number = tile.sub(isl.UnionPwAff.val_on_domain(tile.domain(), first))
        if self.grid.blocks is not None:
            most = _at(self.grid.blocks, dimension)
            if extent_of(number, domain) > most:
                number = number.mod_val(isl.Val.int_from_si(context, most))
        return Member(number, coincident=True, kind=LoopKind.BLOCK)

    def thread(self, member: Member, size: int, threads: int) -> Member:
        """The points of a tile, dealt out one by one or in runs."""
        point = member.function.mod_val(isl.Val.int_from_si(member.function.get_ctx(), size))
        return Member(self.dealt(point, threads, size), coincident=True, kind=LoopKind.THREAD)


def grid_cuts(choose: ChooseCuts, grid: Grid) -> ChooseCuts:
    """The cuts with the points of tiles in groups, of which every thread has one iteration or a whole one."""

    def chosen(band: Band, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> tuple[Cut, ...]:
        cuts = choose(band, domain, depth, points)
        if depth > 0 or any(member.kind.is_mapped for member in band.members):
            return cuts
        nest = _nest(band, cuts, domain, grid)
        groups: dict[int, int] = {}
        for (member, size), threads in zip(nest.shared, nest.threads[1:] if nest.rows else nest.threads, strict=False):
            position = next(n for n, own in enumerate(band.members) if own is member)
            groups[position] = group_size(grid.distribution, threads, size)
        return tuple(
            replace(cut, within=groups[position]) if 1 < groups.get(position, 0) < cut.size else cut
            for position, cut in enumerate(cuts)
        )

    return chosen


@dataclass(frozen=True, slots=True)
class _Nest:
    """What blocks and threads share of a nest.

    ``shared``: the loops whose tiles go to blocks, with the sizes of these, x first.  ``rows``: by statement, the loops
    inside that threads share, and ``extents``, their iterations.  ``threads``: along every dimension, x first; where
    there are rows, x is theirs.
    """

    shared: list[tuple[Member, int]]
    rows: Mapping[str, Member]
    extents: Mapping[str, int]
    threads: tuple[int, ...]


def _nest(band: Band, cuts: tuple[Cut, ...], domain: isl.UnionSet, grid: Grid) -> _Nest:
    """How a nest is shared; OptionsError where there are more threads than iterations for them."""
    tiled = [(m, cut.size) for m, cut in zip(band.members, cuts, strict=True) if m.coincident and cut != WHOLE]
    shared = tiled[-DIMENSIONS:][::-1]
    rows = _inner_loops(band.child, domain)
    extents = {name: extent_of(member.function, _only(domain, name)) for name, member in rows.items()}
    along_rows = [max(extents.values())] if rows else []
    sizes = [*along_rows, *(size for _, size in shared)][:DIMENSIONS]
    threads: list[int] = []
    for dimension, size in enumerate(sizes):
        free = THREADS // math.prod(threads)
        usual = min(size, free, TILE[0] if dimension == 0 and len(sizes) > 1 and not rows else free)
        threads.append(usual if grid.threads is None else _at(grid.threads, dimension))
        if threads[-1] > size:
            raise OptionsError(
                f"a block has {threads[-1]} threads along dimension {dimension}, but "
                + (
                    f"the loops that they share have at most {size} iterations; make the block smaller"
                    if dimension < len(along_rows)
                    else f"a tile only {size} points; make the tile larger or the block smaller"
                )
            )
    return _Nest(shared, rows, extents, tuple(threads))


def group_size(distribution: Distribution, threads: int, extent: int) -> int:
    """Iterations in one group: as many as there are threads, or as one thread runs in a row."""
    return threads if distribution is Distribution.CYCLIC else -(-extent // threads)


def _in_groups(node: Node, nest: _Nest, distribution: Distribution) -> Node:
    """The subtree with the loops that threads share walked in groups."""
    match node:
        case Leaf():
            return node
        case Sequence(filters):
            return Sequence(tuple(replace(f, child=_in_groups(f.child, nest, distribution)) for f in filters))
        case Band(members, _, child):
            changed: list[Member] = []
            for member in members:
                sizes = {
                    group_size(distribution, nest.threads[0], nest.extents[name])
                    for name, row in nest.rows.items()
                    if row is member
                }
                changed += in_groups(member, size) if len(sizes) == 1 and (size := min(sizes)) > 1 else (member,)
            return replace(node, members=tuple(changed), child=_in_groups(child, nest, distribution))
        case Extension():
            raise AssertionError("buffers are placed in mapped trees, so mapping comes first")
        case _:
            assert_never(node)


def _at(sizes: tuple[int, ...], dimension: int) -> int:
    """The size along a dimension: 1 beyond those that are named."""
    return sizes[dimension] if dimension < len(sizes) else 1


def _around(node: Node, domain: isl.UnionSet, blocks: Items[Member], threads: Items[Member]) -> Band:
    """The node on these blocks and threads, x first; on one of them where there are none."""
    nothing = isl.UnionPwAff.val_on_domain(domain, isl.Val.zero(domain.get_ctx()))
    members = [
        *(reversed(blocks) if blocks else [Member(nothing, coincident=True, kind=LoopKind.BLOCK)]),
        *(reversed(threads) if threads else [Member(nothing, coincident=True, kind=LoopKind.THREAD)]),
    ]
    return Band(tuple(members), permutable=True, child=node)
