"""Mapping to thread blocks and threads (paper, Section 5.4).

The block and thread of an instance are further dimensions of its time, outside of all others: the loops that remain
below are the code of one thread.  Degenerate loops are dropped: a tile that a block has to itself leaves no loop.  The
remaining part of a loop that threads share counts from 0 in every thread.

Every outermost nest becomes a kernel of its own.  One without a coincident loop runs on a single thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.base.counted import counted
from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.base.grid import MOST_BLOCKS
from tc.language.isl.pieces import sets_of
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.gpu.mapping.launched_steps import are_worth_launches
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.transform.digits import digits_of
from tc.polyhedral.transform.share_loops import ORDER, Grid, Nest, distribution_of, group_size, nest_of, size_at
from tc.polyhedral.transform.sums import sums_from_zero
from tc.polyhedral.transform.tile import ChooseCuts, Cut, in_groups
from tc.targets.options import Distribution


def map_to_grid(tree: ScheduleTree, choose: ChooseCuts, grid: Grid, *, launched_steps: bool = False) -> ScheduleTree:
    """The tree with a band of blocks and threads around every outermost nest.

    ``choose``: the tile sizes for the nests, which are tiled afterwards.  ``launched_steps``: where steps that wait for
    each other have much to do, the nests inside are those that are mapped, and each step launches them.  OptionsError
    where a block has more threads along a dimension than GPUs allow.
    """
    if tree.domain.is_empty():
        return tree
    return replace(tree, root=_Mapper(choose, grid, [], [], launched_steps).visit(tree.root, tree.domain))


def refuse_surplus_dimensions(
    tree: ScheduleTree, choose: ChooseCuts, grid: Grid, *, launched_steps: bool = False
) -> None:
    """OptionsError where the grid or its blocks have more dimensions than any nest has loops to share.

    ``launched_steps``: as for ``map_to_grid``.
    """
    mapper = _Mapper(choose, grid, [], [], launched_steps)
    mapper.visit(tree.root, tree.domain)
    for name, sizes, dimensions in (
        ("grid", grid.blocks, mapper.block_dimensions),
        ("block", grid.threads, mapper.thread_dimensions),
    ):
        most = max(dimensions, default=0)
        if len(sizes or ()) > most:
            raise OptionsError(
                f"{name} has {counted(len(sizes or ()), 'size')}, but at most {counted(most, 'loop')} of a nest can be "
                f"shared by {'blocks' if name == 'grid' else 'threads'}; leave out the last ones, or tile more loops "
                f"({ORDER})"
            )


@frozen
class _Mapper:
    """How many loops each nest so far shares among blocks and among threads."""

    choose: ChooseCuts
    grid: Grid
    block_dimensions: list[int]
    thread_dimensions: list[int]
    launched_steps: bool

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
        if self.launched_steps and are_worth_launches(band, domain, self.grid.machine.block_threads):
            steps, *others = band.members
            below = replace(band, members=tuple(others)) if others else band.child
            inside = replace(self, launched_steps=False).visit(below, domain)
            return Band((replace(steps, kind=LoopKind.LAUNCH),), band.permutable, inside)
        nest = nest_of(band, self.choose(band, domain, 0, ()), domain, self.grid)
        self.block_dimensions.append(len(nest.tiles))
        self.thread_dimensions.append(len(nest.threads))
        blocks: list[Member] = []
        for member, size in nest.tiles:
            blocks.append(self.block(member, size, domain, self.most_blocks(blocks, len(nest.tiles), domain)))
        threads = self.by_digits(nest) if nest.digits else [self.thread(*own) for own in nest.dealt]
        if not nest.rows:
            return _around(band, domain, blocks, threads)
        below = replace(band, child=_in_groups(band.child, domain, nest, self.grid.distribution))
        return _around(below, domain, blocks, [self.row(nest, domain), *threads])

    def by_digits(self, nest: Nest) -> list[Member]:
        """The loops over threads, x first, each over the digit that is theirs."""
        found: dict[int, Member] = {}
        for member, cut in nest.digits:
            point = member.function.mod_val(isl.Val.int_from_si(member.function.get_ctx(), cut.size))
            for digit, function in zip(cut.digits, digits_of(point, cut.digits), strict=True):
                if digit.axis is not None:
                    found[digit.axis] = Member(function, coincident=True, kind=LoopKind.THREAD, launched=digit.size)
        return [found[axis] for axis in sorted(found)]

    def row(self, nest: Nest, domain: isl.UnionSet) -> Member:
        """The iterations of loops inside, in threads along x; statements without such a loop run on the first one."""
        function = isl.UnionPwAff.empty(domain.get_space())
        pieces = sets_of(domain)
        for piece in pieces:
            own, name = isl.UnionSet.from_set(piece), piece.get_tuple_name()
            if name in nest.rows:
                counted = sums_from_zero(nest.rows[name].member, domain).function
                number = self.dealt(counted, self.grid.distribution, nest.threads[0], nest.rows[name].extent)
            else:
                number = isl.UnionPwAff.val_on_domain(own, isl.Val.zero(domain.get_ctx()))
            function = function.union_add(number.intersect_domain(own))
        return self.over_threads(function, nest.threads[0])

    def over_threads(self, function: isl.UnionPwAff, threads: int) -> Member:
        """A loop over threads; options say how many there are, whether all have iterations or not."""
        launched = 0 if self.grid.threads is None else threads
        return Member(function, coincident=True, kind=LoopKind.THREAD, launched=launched)

    def dealt(self, function: isl.UnionPwAff, distribution: Distribution, threads: int, extent: int) -> isl.UnionPwAff:
        """The thread of each iteration of a loop of this extent: cyclic or in blocks."""
        context = function.get_ctx()
        size = isl.Val.int_from_si(context, group_size(distribution, threads, extent))
        match distribution:
            case Distribution.CYCLIC | Distribution.VECTORS:
                return function.mod_val(size)
            case Distribution.BLOCKED:
                return _turn(function, group_size(distribution, threads, extent), threads)
            case _:
                assert_never(distribution)

    def most_blocks(self, blocks: Items[Member], dimensions: int, domain: isl.UnionSet) -> int:
        """The most blocks along the dimension after these, of so many."""
        if dimensions <= len(MOST_BLOCKS):
            most = MOST_BLOCKS[len(blocks)]
        else:
            most = MOST_BLOCKS[0] // math.prod(extent_of(member.function, domain) for member in blocks)
        return most if self.grid.blocks is None else min(most, size_at(self.grid.blocks, len(blocks)))

    def block(self, member: Member, size: int, domain: isl.UnionSet, most: int) -> Member:
        """The tiles, distributed cyclically over blocks where there are more of them than blocks."""
        context = domain.get_ctx()
        tile = member.function.scale_down_val(isl.Val.int_from_si(context, size)).floor()
        first = tile.intersect_domain(domain).floor().min_val()
        number = tile.sub(isl.UnionPwAff.val_on_domain(tile.domain(), first))
        if extent_of(number, domain) > most:
            if self.grid.blocks is None:
                # Of the hardware's own limits, 2^31 - 1 and 65535, isl finds no multiples for minutes.
                most = 1 << most.bit_length() - 1
            number = number.mod_val(isl.Val.int_from_si(context, most))
        return Member(number, coincident=True, kind=LoopKind.BLOCK)

    def thread(self, member: Member, cut: Cut, threads: int) -> Member:
        """The points of a tile, distributed cyclically or in blocks, or in runs of their own."""
        point = member.function.mod_val(isl.Val.int_from_si(member.function.get_ctx(), cut.size))
        if cut.run:
            return self.over_threads(_turn(point, cut.run, threads), threads)
        distribution = distribution_of(cut, self.grid.distribution)
        return self.over_threads(self.dealt(point, distribution, threads, cut.size), threads)


def grid_cuts(choose: ChooseCuts, grid: Grid) -> ChooseCuts:
    """The cuts with the points of tiles in groups, of which every thread has one iteration or a whole one."""

    def chosen(band: Band, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> tuple[Cut, ...]:
        cuts = choose(band, domain, depth, points)
        if depth > 0 or any(member.kind.is_mapped for member in band.members):
            return cuts
        nest = nest_of(band, cuts, domain, grid)
        groups: dict[int, int] = {}
        for member, cut, threads in nest.dealt:
            position = next(n for n, own in enumerate(band.members) if own is member)
            distribution = distribution_of(cut, grid.distribution)
            groups[position] = cut.run or group_size(distribution, threads, cut.size)
        return tuple(
            replace(cut, within=groups[position]) if 1 < groups.get(position, 0) < cut.size else cut
            for position, cut in enumerate(cuts)
        )

    return chosen


def _turn(number: isl.UnionPwAff, run: int, threads: int) -> isl.UnionPwAff:
    """The thread of each number, where they take turns with runs of so many."""
    context = number.get_ctx()
    length, count = (isl.Val.int_from_si(context, value) for value in (run, threads))
    return number.scale_down_val(length).floor().mod_val(count)


def _in_groups(node: Node, domain: isl.UnionSet, nest: Nest, distribution: Distribution) -> Node:
    """The subtree whose distributed loops are walked in groups."""
    match node:
        case Leaf():
            return node
        case Sequence(filters):
            return Sequence(tuple(replace(f, child=_in_groups(f.child, domain, nest, distribution)) for f in filters))
        case Band(members, _, child):
            changed: list[Member] = []
            for member in members:
                extent = next((row.extent for row in nest.rows.values() if row.member is member), 1)
                size = group_size(distribution, nest.threads[0], extent)
                changed += in_groups(sums_from_zero(member, domain), size) if extent > 1 and size > 1 else (member,)
            return replace(node, members=tuple(changed), child=_in_groups(child, domain, nest, distribution))
        case Extension():
            raise AssertionError("buffers are placed in mapped trees, so mapping comes first")
        case _:
            assert_never(node)


def _around(node: Node, domain: isl.UnionSet, blocks: Items[Member], threads: Items[Member]) -> Band:
    """The node on these blocks and threads, x first; on one of them where there are none."""
    nothing = isl.UnionPwAff.val_on_domain(domain, isl.Val.zero(domain.get_ctx()))
    members = [
        *(reversed(blocks) if blocks else [Member(nothing, coincident=True, kind=LoopKind.BLOCK)]),
        *(reversed(threads) if threads else [Member(nothing, coincident=True, kind=LoopKind.THREAD)]),
    ]
    return Band(tuple(members), permutable=True, child=node)
