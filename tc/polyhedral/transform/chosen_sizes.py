"""Which sizes the loops around each statement were tiled with, or will be."""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from tc.base.frozen import frozen
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.paths import paths_below
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop, layouts_of
from tc.polyhedral.ir.tree import Band, Member, ScheduleTree, statement_names
from tc.polyhedral.transform.tile import ChooseCuts, Cut, is_counted, is_register, stays_whole, step_of, tile_tree

# Of statements, by name.
Sizes = Mapping[str, tuple[int, ...]]


def tile_sizes(tree: ScheduleTree, choose: ChooseCuts) -> Sizes:
    """Tile sizes of the loops around each statement, outermost first; 0 for those that are not tiled."""
    found: dict[str, tuple[int, ...]] = {}

    def noted(band: Band, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> tuple[Cut, ...]:
        cuts = choose(band, domain, depth, points)
        sizes = tuple(
            0 if stays_whole(member, domain) else cut.size * step_of(member)
            for member, cut in zip(band.members, cuts, strict=True)
            if is_counted(member)
        )
        for name in statement_names(domain):
            found[name] = (*found.get(name, ())[:depth], *sizes)
        return cuts

    tile_tree(tree, noted)
    return {name: _without_last_zeros(sizes) for name, sizes in found.items()}


def _without_last_zeros(sizes: tuple[int, ...]) -> tuple[int, ...]:
    while sizes and not sizes[-1]:
        sizes = sizes[:-1]
    return sizes


@frozen
class RegisterTile:
    """Sizes in the order of the target's loops, and the place of the one that vectors lie along."""

    sizes: tuple[int, ...]
    lane: int | None


def register_tiles(tree: ScheduleTree, scop: Scop) -> Mapping[str, RegisterTile]:
    """The register tile of each reduction that has one, in a tree that nothing else has been done to."""
    found: dict[str, RegisterTile] = {}
    layouts = layouts_of(scop)
    for name, members in paths_below(tree.root, tree.domain):
        statement = scop.statement(name)
        if not statement.accumulates:
            continue
        body, own = statement.body, isl.UnionSet.from_set(statement.domain)
        tile = {iterator_of(m.function, body): m for m in members if is_register(m)}
        names = [n for n in body.iterators if n in tile and stride(body.subscripts, layouts[body.target], n) != 0]
        if names:
            lanes = [place for place, n in enumerate(names) if tile[n].kind is LoopKind.VECTOR]
            sizes = tuple(extent_of(tile[n].function, own) for n in names)
            found[name] = RegisterTile(sizes, lanes[0] if lanes else None)
    return found
