"""Register tiles: small tiles of the loops around a reduction, whose results fit the vector registers.

The points of the tile stand below the loops that carry the reduction, in every branch that shares the tiled loops, so
that a statement that initializes or finishes the result finds it in registers, too (``tc.polyhedral.cpu.promote`` puts
it there).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import TypeAlias, assert_never

import islpy as isl

from tc.language.program.program import iterators_in
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.extents import extent_of, volume
from tc.polyhedral.analysis.paths import paths_below
from tc.polyhedral.analysis.reads import accesses
from tc.polyhedral.analysis.scattered import is_scatter
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.cpu.chunk_steps import runs_steps
from tc.polyhedral.cpu.microkernel import MicroKernel, Surroundings, carried_rows, choose_microkernel
from tc.polyhedral.ir.loops import LoopKind, StatementBody
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.transform.tile import WHOLE, Cut, sizes_at, step_of, tile_tree
from tc.targets.machine import VectorUnit

# The tile for a statement in such surroundings; None for no tile.
ChooseTile: TypeAlias = Callable[[ScopStatement, Surroundings], MicroKernel | None]


def explicit_tile(scop: Scop, sizes: tuple[int, ...], lane: int | None) -> ChooseTile:
    """Sizes for the iterators that choose the target's element, innermost last; those before them are not tiled.

    ``lane``: the place among these sizes of the iterator that vectors lie along; None for the last.
    """
    layouts = layouts_of(scop)

    def choose(statement: ScopStatement, around: Surroundings) -> MicroKernel | None:
        independent = independent_iterators(statement, layouts)
        if not statement.accumulates or not sizes or not independent:
            return None
        chosen = dict(zip(reversed(independent), reversed(sizes), strict=False))
        chosen |= dict.fromkeys(around.steps, 1) | dict(around.sizes)
        names = [name for name in independent if name in chosen]
        along = names[-1] if lane is None or lane >= len(names) else names[lane]
        return MicroKernel(along, chosen)

    return choose


def default_tile(scop: Scop, unit: VectorUnit, *, packs: bool) -> ChooseTile:
    """The tile that the cost model finds cheapest."""
    layouts = layouts_of(scop)

    @cache
    def found(name: str, around: Surroundings) -> MicroKernel | None:
        statement = scop.statement(name)
        if is_scatter(statement.body):
            return None
        rows = carried_rows(statement, layouts)
        if rows is not None:
            return None if any(size > 1 for _, size in around.sizes) or around.within else rows
        return choose_microkernel(statement, layouts, unit, packs=packs, around=around)

    return lambda statement, around: found(statement.name, around)


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
    blocks, layouts = _blocks_of(tree, scop), layouts_of(scop)

    def cuts(band: Band, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> tuple[Cut, ...]:
        sizes = tuple(zip(band.members, sizes_at(tiles, band, depth), strict=True))
        statements = [scop.statement(name) for name in statement_names(domain)]
        found = _heaviest_tile(statements, _reduced_in(band, domain, scop), points, sizes, blocks, layouts, choose)
        if found is None:
            return tuple(WHOLE for _ in band.members)
        return tuple(_cut(member, *found, lanes=lanes) for member in band.members)

    return tile_tree(tree, cuts)


@dataclass(slots=True)
class _Blocks:
    """What blocks are around a statement.

    ``steps``: the iterators that loops over steps have.  ``chunks``: the extents of those of which a core has a chunk.
    ``written``: the tensors that these steps write.
    """

    steps: set[str] = field(default_factory=set)
    chunks: dict[str, int] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)


def _blocks_of(tree: ScheduleTree, scop: Scop) -> Mapping[str, _Blocks]:
    """By statement, where it is in one."""
    found: dict[str, _Blocks] = {}

    def visit(node: Node, domain: isl.UnionSet) -> None:
        match node:
            case Band(members):
                bodies = [scop.statement(name).body for name in statement_names(domain)]
                for body, member in product(bodies, members):
                    iterator = iterator_of(member.function, body)
                    if iterator is not None and member.chunks:
                        found.setdefault(body.name, _Blocks()).chunks[iterator] = step_of(member)
                    if iterator is not None and runs_steps(node):
                        own = found.setdefault(body.name, _Blocks())
                        own.steps.add(iterator)
                        own.written.update(other.target for other in bodies)
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


def _reduced_in(band: Band, domain: isl.UnionSet, scop: Scop) -> frozenset[str]:
    """The statements of which loops here or below run over terms of a reduction, which a tile adds up in registers."""
    found = set[str]()
    for name, members in paths_below(band, domain):
        body = scop.statement(name).body
        loops = {iterator_of(member.function, body) for member in members}
        if loops - iterators_in(body.subscripts):
            found.add(name)
    return frozenset(found)


def _heaviest_tile(
    statements: Items[ScopStatement],
    reduced: frozenset[str],
    points: tuple[Member, ...],
    sizes: tuple[tuple[Member, int], ...],
    blocks: Mapping[str, _Blocks],
    layouts: Mapping[str, Layout],
    choose: ChooseTile,
) -> tuple[StatementBody, MicroKernel] | None:
    """The ``reduced`` statement with the most instances that has a register tile, and the tile."""
    shared = len({statement.body.target for statement in statements}) > 1
    for statement in sorted(statements, key=lambda s: -volume(isl.UnionSet.from_set(s.domain))):
        across = _across(statement, statements, [member for member, _ in sizes], layouts)
        own = blocks.get(statement.name, _Blocks())
        around = _surroundings(statement, points, sizes, own, across, shared=shared)
        tile = choose(statement, around)
        if tile is not None and statement.name in reduced:
            return statement.body, tile
    return None


def _across(
    statement: ScopStatement, statements: Items[ScopStatement], members: Items[Member], layouts: Mapping[str, Layout]
) -> dict[str, int]:
    """By iterator, how many accesses of others in the same loops move across memory along it.

    Elements of its target are in the tile, too.
    """
    found: dict[str, int] = {}
    for other, member in product(statements, members):
        own, theirs = (iterator_of(member.function, one.body) for one in (statement, other))
        if other is statement or own is None or theirs is None:
            continue
        moved = [
            stride(subscripts, layouts[tensor], theirs)
            for tensor, subscripts in accesses(other.body)
            if tensor != statement.body.target
        ]
        found[own] = found.get(own, 0) + sum(step not in (0, 1) for step in moved)
    return {name: count for name, count in found.items() if count}


def _surroundings(
    statement: ScopStatement,
    points: tuple[Member, ...],
    sizes: tuple[tuple[Member, int], ...],
    blocks: _Blocks,
    across: Mapping[str, int],
    *,
    shared: bool,
) -> Surroundings:
    domain = isl.UnionSet.from_set(statement.domain)
    around = {name: point for point in points if (name := iterator_of(point.function, statement.body)) is not None}
    fixed = {name: extent_of(own.function, domain) for name, own in around.items()}
    within = {
        name: size
        for member, size in sizes
        if size and (name := iterator_of(member.function, statement.body)) is not None
    }
    return Surroundings(
        tuple(sorted(fixed.items())),
        next((name for name, point in around.items() if point.kind is LoopKind.VECTOR), None),
        tuple(sorted(within.items())),
        tuple(sorted(blocks.chunks.items())),
        frozenset(blocks.steps),
        frozenset(blocks.written),
        shared,
        tuple(sorted(across.items())),
    )


def _cut(member: Member, body: StatementBody, tile: MicroKernel, *, lanes: bool) -> Cut:
    iterator = iterator_of(member.function, body)
    size = tile.sizes.get(iterator, 0) if iterator is not None and member.coincident else 0
    if size == 0 or (size == 1 and iterator != tile.lane):
        return WHOLE
    return Cut(size, LoopKind.VECTOR if lanes and iterator == tile.lane else LoopKind.REGISTER)
