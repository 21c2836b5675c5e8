"""Register tiles: small tiles of the loops around a reduction, whose results fit the vector registers.

The points of the tile stand below the loops that carry the reduction, in every branch that shares the tiled loops, so
that a statement that initializes or finishes the result finds it in registers, too (``tc.polyhedral.cpu.promote`` puts
it there).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias, assert_never

import islpy as isl

from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.extents import extent_of, volume
from tc.polyhedral.analysis.scattered import is_scatter
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.cpu.chunk_steps import runs_steps
from tc.polyhedral.cpu.microkernel import MicroKernel, carried_rows, choose_microkernel
from tc.polyhedral.ir.loops import LoopKind, StatementBody
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.transform.tile import WHOLE, Cut, sizes_at, tile_tree
from tc.targets.machine import VectorUnit

# The tile for a statement of which some iterators are tiled already, given their sizes, and for others the sizes of
# larger tiles, which those of the register tile must divide; None for no tile.
ChooseTile: TypeAlias = Callable[[ScopStatement, Mapping[str, int], Mapping[str, int]], MicroKernel | None]


def explicit_tile(scop: Scop, sizes: tuple[int, ...], lane: int | None) -> ChooseTile:
    """Sizes for the iterators that choose the target's element, innermost last; those before them are not tiled.

    ``lane``: the place among these sizes of the iterator that vectors lie along; None for the last.
    """
    layouts = layouts_of(scop)

    def choose(statement: ScopStatement, fixed: Mapping[str, int], _within: Mapping[str, int]) -> MicroKernel | None:
        independent = independent_iterators(statement, layouts)
        if not statement.accumulates or not sizes or not independent:
            return None
        chosen = dict(zip(reversed(independent), reversed(sizes), strict=False)) | dict(fixed)
        names = [name for name in independent if name in chosen]
        along = names[-1] if lane is None or lane >= len(names) else names[lane]
        return MicroKernel(along, chosen)

    return choose


def default_tile(scop: Scop, unit: VectorUnit, *, packs: bool) -> ChooseTile:
    """The tile that the cost model finds cheapest."""
    layouts = layouts_of(scop)

    @cache
    def found(name: str, fixed: tuple[tuple[str, int], ...], within: tuple[tuple[str, int], ...]) -> MicroKernel | None:
        statement = scop.statement(name)
        if is_scatter(statement.body):
            return None
        rows = carried_rows(statement, layouts)
        if rows is not None:
            return None if any(size > 1 for _, size in fixed) or within else rows
        return choose_microkernel(statement, layouts, unit, packs=packs, fixed=dict(fixed), within=dict(within))

    def choose(statement: ScopStatement, fixed: Mapping[str, int], within: Mapping[str, int]) -> MicroKernel | None:
        return found(statement.name, tuple(sorted(fixed.items())), tuple(sorted(within.items())))

    return choose


def independent_iterators(statement: ScopStatement, layouts: Mapping[str, Layout]) -> tuple[str, ...]:
    """The iterators that choose the element of the target, outermost first; none where data choose it, too."""
    body = statement.body
    if is_scatter(body):
        return ()
    names = body.iterators[: statement.domain.dim(isl.dim_type.set)]
    return tuple(name for name in names if stride(body.subscripts, layouts[body.target], name) != 0)


def register_tile_tree(
    tree: ScheduleTree, scop: Scop, choose: ChooseTile, *, lanes: bool, tiles: tuple[int, ...] = ()
) -> ScheduleTree:
    """Tile the loops around every reduction that has a register tile.

    ``lanes``: mark the one for vectors.  ``tiles``: sizes of the larger tiles that the same loops will get.  Loops that
    run the steps of blocks are not tiled: one step at a time is in a tile.
    """
    steps = _step_iterators(tree, scop)

    def below_steps(
        statement: ScopStatement, fixed: Mapping[str, int], within: Mapping[str, int]
    ) -> MicroKernel | None:
        return choose(statement, {**steps.get(statement.name, {}), **fixed}, within)

    def cuts(band: Band, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> tuple[Cut, ...]:
        sizes = tuple(zip(band.members, sizes_at(tiles, band, depth), strict=True))
        found = _heaviest_tile(scop, domain, points, sizes, below_steps)
        if found is None:
            return tuple(WHOLE for _ in band.members)
        return tuple(_cut(member, *found, lanes=lanes) for member in band.members)

    return tile_tree(tree, cuts)


def _step_iterators(tree: ScheduleTree, scop: Scop) -> Mapping[str, Mapping[str, int]]:
    """By statement, the iterators that loops over steps have, each with the size that it has in a tile."""
    found: dict[str, dict[str, int]] = {}

    def visit(node: Node, domain: isl.UnionSet) -> None:
        match node:
            case Band():
                if runs_steps(node):
                    for name in statement_names(domain):
                        iterator = iterator_of(node.members[0].function, scop.statement(name).body)
                        if iterator is not None:
                            found.setdefault(name, {})[iterator] = 1
                visit(node.child, domain)
            case Sequence(filters):
                for branch in filters:
                    visit(branch.child, domain.intersect(branch.domain))
            case Leaf() | Extension():
                pass
            case _:
                assert_never(node)

    visit(tree.root, tree.domain)
    return found


def _heaviest_tile(
    scop: Scop,
    domain: isl.UnionSet,
    points: tuple[Member, ...],
    sizes: tuple[tuple[Member, int], ...],
    choose: ChooseTile,
) -> tuple[StatementBody, MicroKernel] | None:
    """The statement below with the most instances that has a register tile, and the tile."""
    statements = [scop.statement(name) for name in statement_names(domain)]
    for statement in sorted(statements, key=lambda s: -volume(isl.UnionSet.from_set(s.domain))):
        fixed = {
            name: extent_of(point.function, isl.UnionSet.from_set(statement.domain))
            for point in points
            if (name := iterator_of(point.function, statement.body)) is not None
        }
        within = {
            name: size
            for member, size in sizes
            if size and (name := iterator_of(member.function, statement.body)) is not None
        }
        tile = choose(statement, fixed, within)
        if tile is not None:
            return statement.body, tile
    return None


def _cut(member: Member, body: StatementBody, tile: MicroKernel, *, lanes: bool) -> Cut:
    iterator = iterator_of(member.function, body)
    size = tile.sizes.get(iterator, 0) if iterator is not None and member.coincident else 0
    if size == 0 or (size == 1 and iterator != tile.lane):
        return WHOLE
    return Cut(size, LoopKind.VECTOR if lanes and iterator == tile.lane else LoopKind.REGISTER)
