"""Tiling of perfect and imperfect nests (paper, Section 5.3).

A tiled member becomes a tile loop where it stands and a point loop.  Parallel point loops are sunk: they carry no
dependence, so they may run below any other loop, and they are replicated into every branch below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

import islpy as isl

from tc.polyhedral.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence

# The sizes for a band, given the instances below it and the number of members above it on its path.
ChooseSizes: TypeAlias = Callable[[Band, isl.UnionSet, int], tuple[int, ...]]


def explicit_sizes(sizes: tuple[int, ...]) -> ChooseSizes:
    """Sizes for the members along every path, outermost first; 0 and members beyond the end are not tiled."""

    def choose(band: Band, _domain: isl.UnionSet, depth: int) -> tuple[int, ...]:
        return sizes[depth : depth + len(band.members)]

    return choose


def tile_tree(tree: ScheduleTree, choose: ChooseSizes) -> ScheduleTree:
    """Tile every band by the sizes chosen for it; points of parallel members end up at the leaves."""
    return replace(tree, root=_Tiler(choose).tile(tree.root, tree.domain, 0, ()))


@dataclass(frozen=True, slots=True)
class _Tiler:
    choose: ChooseSizes

    def tile(self, node: Node, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> Node:
        """The subtree with its own bands tiled and the point loops from above sunk into it."""
        match node:
            case Leaf():
                return Band(points, permutable=True, child=node) if points else node
            case Sequence(filters):
                if all(isinstance(branch.child, Leaf) for branch in filters):
                    return Band(points, permutable=True, child=node) if points else node
                return Sequence(tuple(self.branch(f, domain, depth, points) for f in filters))
            case Band():
                return self.band(node, domain, depth, points)
            case Extension():
                raise AssertionError("buffers are placed in tiled trees, so tiling comes first")
            case _:
                assert_never(node)

    def branch(self, branch: Filter, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> Filter:
        inside = domain.intersect(branch.domain)
        kept = tuple(replace(p, function=p.function.intersect_domain(branch.domain)) for p in points)
        return replace(branch, child=self.tile(branch.child, inside, depth, kept))

    def band(self, band: Band, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> Node:
        sizes = self.choose(band, domain, depth)
        sizes = (*sizes, *(0 for _ in range(len(band.members) - len(sizes))))
        tiles: list[Member] = []
        carried: list[Member] = []
        sunk = list(points)
        for member, size in zip(band.members, sizes, strict=True):
            if size == 0:
                tiles.append(member)
                continue
            value = isl.Val.int_from_si(member.function.get_ctx(), size)
            tiles.append(replace(member, function=member.function.scale_down_val(value).floor()))
            point = replace(member, function=member.function.mod_val(value))
            (sunk if member.coincident else carried).append(point)
        if carried and not isinstance(band.child, Leaf):
            raise AssertionError("only the band above a leaf holds members that carry dependences")
        below = self.tile(band.child, domain, depth + len(band.members), (*carried, *sunk))
        return Band(tuple(tiles), band.permutable, below)
