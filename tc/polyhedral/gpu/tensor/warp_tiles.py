"""The tiles that warps multiply matrices in: which, by the sizes of a product and what was asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.language.program.specialization import Layout
from tc.language.program.terms import half_factors
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.gpu.tensor.lines import Lines
from tc.polyhedral.gpu.tensor.products import MatrixProduct, matrix_product
from tc.polyhedral.gpu.tensor.tap_tiles import with_all_taps
from tc.polyhedral.gpu.tensor.tile_shapes import (
    EIGHT,
    GROUP,
    GROUP_COLUMNS,
    GROUP_ROWS,
    GROUP_TILES,
    PAIR,
    QUADS,
    SMALL_TILES,
    STEPS,
    TAPS_TILES,
    TILES,
    WIDE_BLOCKS,
    WIDE_BYTES,
    WIDE_TILE,
    WarpTile,
)
from tc.polyhedral.ir.scop import Scop, layouts_of
from tc.polyhedral.ir.tree import Band, Member
from tc.polyhedral.transform.tile import ChooseCuts, Cut, is_counted
from tc.targets.machine import GpuMachine

# Where groups may run them: a row of an operand is what a swizzle is of.
_GROUP_STEPS: Final = 4
# Where operands of all taps of a convolution have no room: points of a tile from which on it is worth it to bring them
# anew for each.  Kernels without matrix instructions use what they bring for all taps.
_TAPS_POINTS: Final = 2048


@frozen
class Asked:
    """Sizes of tiles and of blocks that were asked for; ``groups``: warpgroups may multiply matrices, too.

    ``shared``: bytes of shared memory that a block may have.
    """

    sizes: tuple[int, ...] | None
    block: tuple[int, ...] | None
    groups: bool
    shared: int


def with_warp_tiles(choose: ChooseCuts, scop: Scop, machine: GpuMachine, asked: Asked) -> ChooseCuts:
    """The cuts under which warps multiply matrices, where that is the most of a nest; all others as they are."""

    def chosen(band: Band, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> tuple[Cut, ...]:
        cuts = choose(band, domain, depth, points)
        product = matrix_product(scop, machine.matrix_shapes, domain)
        if product is None:
            return cuts
        members = _members(band, product)
        if depth == 0:
            tile = _tile(cuts, band, members, product, machine, asked, layouts_of(scop))
            if tile is None:
                return cuts
            cuts = _of_tile(cuts, band, members, product, tile, domain)
            return _with_steps(cuts, band, members, product, asked, grouped=tile.grouped)
        if product.steps in members and any(point.digit for point in points):
            grouped = (
                asked.groups and _is_for_groups(product, layouts_of(scop)) and _are_grouped(points, product, domain)
            )
            return _with_steps(cuts, band, members, product, asked, grouped=grouped)
        return cuts

    return chosen


def _members(band: Band, product: MatrixProduct) -> Mapping[str, int]:
    """The places of the loops over iterators of the product."""
    found: dict[str, int] = {}
    for place, member in enumerate(band.members):
        name = iterator_of(member.function, product.statement.body) if is_counted(member) else None
        if name is not None:
            found[name] = place
    return found


def _tile(
    cuts: tuple[Cut, ...],
    band: Band,
    members: Mapping[str, int],
    product: MatrixProduct,
    machine: GpuMachine,
    asked: Asked,
    layouts: Mapping[str, Layout],
) -> WarpTile | None:
    """The tile of a band with rows and columns; None where it has none, or other sizes were asked for."""
    sizes = None if asked.sizes is None else {name: cuts[place].size for name, place in members.items()}
    parallel = {name for name, place in members.items() if band.members[place].coincident}
    if not {product.rows, product.columns} <= parallel:
        return None
    lines = product.lines.among(parallel)
    if sizes is not None and not _asks_for_eights(product, lines, sizes):
        lines = Lines()
    extents = product.extents(lines)
    # An instruction has two eights of rows, both of which are read.
    most = extents if lines.rows is None else (EIGHT * product.extent(lines.rows), extents[1])

    def fitting(tiles: Iterable[WarpTile], most: tuple[int, int]) -> list[WarpTile]:
        whole = (tile for tile in tiles if tile.rows and tile.columns and tile.fits(product.shape.m, product.shape.n))
        return [tile for tile in whole if tile.rows <= most[0] and tile.columns <= most[1]]

    def blocks(tile: WarpTile) -> int:
        own = Lines() if tile.grouped else lines
        rows, columns = product.extents(own)
        others = parallel - {product.rows, product.columns, own.rows, own.columns}
        return math.prod(map(product.extent, others)) * -(-rows // tile.rows) * -(-columns // tile.columns)

    def enough(tiles: list[WarpTile]) -> WarpTile | None:
        return next((tile for tile in tiles if blocks(tile) >= machine.enough_blocks), None)

    if asked.block is not None and not _are_lanes(asked.block):
        return None
    groups = _groups(product, asked, sizes) if _is_for_groups(product, layouts) else []
    by_groups = fitting(groups, product.extents(Lines()))
    large, small = (fitting(own, most) for own in _candidates(product, asked, sizes, lines))
    free = sizes is None and asked.block is None and not product.taps and lines == Lines()
    wide = free and asked.shared >= WIDE_BYTES and product.shape.elements == PAIR
    if wide and blocks(WIDE_TILE) >= WIDE_BLOCKS * machine.enough_blocks:
        large = [*fitting([WIDE_TILE], most), *large]
    # Of few tiles, those of single warps are smaller, and more.
    chosen = enough(by_groups) or (by_groups[0] if by_groups and sizes is not None else None)
    return chosen or enough(large) or next(iter(large[-1:] or small[:1]), None)


def _asks_for_eights(product: MatrixProduct, lines: Lines, sizes: Mapping[str, int]) -> bool:
    """Whether sizes of tiles that were asked for are those of eights of lines."""
    return sizes[product.rows if lines.rows is not None else product.columns] == EIGHT


def _are_lanes(block: Sequence[int]) -> bool:
    """Whether a block that was asked for, x first, has whole warps."""
    x, y = (*block, 1)[:2]
    return x == QUADS and y % GROUP == 0


def _groups(product: MatrixProduct, asked: Asked, sizes: Mapping[str, int] | None) -> list[WarpTile]:
    """Tiles for warpgroups, the largest first."""
    found = list(GROUP_TILES) if asked.groups else []
    if sizes is not None:
        rows, columns = sizes[product.rows], sizes[product.columns]
        found = [replace(tile, columns=columns) for tile in found if tile.rows == rows][:1]
    if asked.block is not None:
        _, y, z = (*asked.block, 1, 1)[:3]
        found = [tile for tile in found if (tile.along_rows, y) == (z, GROUP)]
    return found


def _candidates(
    product: MatrixProduct, asked: Asked, sizes: Mapping[str, int] | None, lines: Lines
) -> tuple[list[WarpTile], list[WarpTile]]:
    """Tiles for single warps, the largest first, and those where there are fewer rows or columns."""
    large: Iterable[WarpTile] = TILES
    small: Iterable[WarpTile] = SMALL_TILES
    if sizes is not None:
        rows = sizes[product.rows] * (1 if lines.rows is None else sizes[lines.rows])
        columns = sizes[product.columns] * (1 if lines.columns is None else sizes[lines.columns])
        every = (tile for tile in (*TILES, *SMALL_TILES) if asked.block is not None or tile.rows <= rows)
        large, small = (replace(tile, rows=rows, columns=columns) for tile in every), ()
    elif fitting := with_all_taps(product, asked.shared):
        large, small = ([tile for tile in fitting if tile in tiles] for tiles in (TAPS_TILES, SMALL_TILES))
    elif product.taps:
        large, small = (tile for tile in TILES if tile.points >= _TAPS_POINTS), ()
    if lines.columns is not None:
        large, small = ((replace(tile, lined=True) for tile in own) for own in (large, small))
    if lines.rows is not None:
        large, small = ((tile.over_lines() for tile in own) for own in (large, small))
    if asked.block is not None:
        large, small = (_in_block(own, asked.block) for own in (large, small))
    return list(large), list(small)


def _in_block(tiles: Iterable[WarpTile], block: Sequence[int]) -> Iterator[WarpTile]:
    """The tiles with the warps of a block that was asked for, x first."""
    _, y, z = (*block, 1, 1)[:3]
    for tile in tiles:
        if not tile.lined_rows:
            yield replace(tile, along_rows=y // GROUP, along_columns=z)
        elif y == GROUP:
            yield replace(tile, along_rows=z)


def _is_for_groups(product: MatrixProduct, layouts: Mapping[str, Layout]) -> bool:
    """Whether groups run all steps of a product of halves whose factors lie along steps, rows or columns in memory."""
    steps, k = product.extent(product.steps), product.shape.k
    factors = half_factors(product.statement.body.value) or ()
    sides = (product.steps, product.rows, product.columns)
    along = all(any(stride(own.subscripts, layouts[own.tensor], n) == 1 for n in sides) for own in factors)
    return along and product.shape.elements == PAIR and steps % k == 0 and steps >= _GROUP_STEPS * k


def _of_tile(
    cuts: tuple[Cut, ...],
    band: Band,
    members: Mapping[str, int],
    product: MatrixProduct,
    tile: WarpTile,
    domain: isl.UnionSet,
) -> tuple[Cut, ...]:
    changed = list(cuts)
    for place, member in enumerate(band.members):
        if member.coincident and extent_of(member.function, domain) > 0:
            changed[place] = replace(cuts[place], size=1, within=0, threads=0)
    lines = product.lines
    sides = (product.rows, lines.rows, tile.of_rows()), (product.columns, lines.columns, tile.of_columns())
    for points, beside, (own, of_lines) in sides:
        changed[members[points]] = own
        if beside is not None and of_lines is not None:
            changed[members[beside]] = of_lines
    return tuple(changed)


def _are_grouped(points: tuple[Member, ...], product: MatrixProduct, domain: isl.UnionSet) -> bool:
    """Whether these are the points that a thread has of a tile on which four warps work together.

    Each thread has rows of the same line, then.
    """
    own = [point for point in points if point.digit]
    if not any(iterator_of(point.function, product.statement.body) == product.rows for point in own):
        return False
    counts = sorted(extent_of(point.function, domain) for point in own)
    return counts in [sorted((GROUP_ROWS // GROUP, PAIR, count // (PAIR * QUADS))) for count in GROUP_COLUMNS]


def _with_steps(
    cuts: tuple[Cut, ...],
    band: Band,
    members: Mapping[str, int],
    product: MatrixProduct,
    asked: Asked,
    *,
    grouped: bool,
) -> tuple[Cut, ...]:
    """Whole steps of instructions lie in shared memory at a time, for all taps or for one of them."""
    if product.steps not in members:
        return cuts
    changed = list(cuts)
    inside = not grouped and bool(with_all_taps(product, asked.shared))
    for name, place in members.items():
        if not band.members[place].coincident and name != product.steps:
            changed[place] = Cut(product.taps.get(name, 1) if inside else 1)
    if inside:
        changed[members[product.steps]] = Cut(product.shape.k, within=product.shape.k, innermost=True)
        return tuple(changed)
    # Operands in shared memory are as large as whole blocks only where some tile is whole.
    whole = product.extent(product.steps) // product.shape.k * product.shape.k
    at_a_time = _GROUP_STEPS if grouped else STEPS
    changed[members[product.steps]] = Cut(min(at_a_time * product.shape.k, whole), within=product.shape.k)
    return tuple(changed)
