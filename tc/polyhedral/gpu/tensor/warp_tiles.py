"""Tiles of products for warps: each lane has the points whose sums a matrix instruction keeps in its registers.

A block has 4 threads along x, multiples of 8 along y and warps along z, so that the lane is ``x + 4 * (y % 8)``.  Rows
are dealt out along y, one by one; columns in pairs along x, and in eights along z.

Where four warps run an instruction together, all warps are along z: each of them has 16 rows, in eights along y, and
all columns.

Columns of short lines, as of an image, are eights of several lines: a tile has eight columns of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.language.program.specialization import Layout
from tc.language.program.terms import half_factors
from tc.polyhedral.analysis.extents import extent_of, sides_of
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.gpu.tensor.products import MatrixProduct, matrix_product
from tc.polyhedral.ir.scop import Scop, layouts_of, reads_by_position
from tc.polyhedral.ir.tree import Band, Member
from tc.polyhedral.transform.digits import Digit
from tc.polyhedral.transform.tile import ChooseCuts, Cut, is_counted
from tc.targets.machine import GpuMachine

# Lanes along x, each with two neighbouring columns, and along y, each with a row.
QUADS: Final = 4
PAIR: Final = 2
EIGHT: Final = PAIR * QUADS
GROUP: Final = 8
# Instructions, one after the other, for whose steps operands lie in shared memory at a time.
_STEPS: Final = 2
# Where groups may run them: a row of an operand is what a swizzle is of.
_GROUP_STEPS: Final = 4


# Warps of a group, and rows of each: one instruction has a block of each group.
WARPS: Final = 4
GROUP_ROWS: Final = 16


def are_warpgroups(threads: Sequence[int]) -> bool:
    """Whether a block of so many threads, x last, has only whole groups of warps along z."""
    return len(threads) == 3 and tuple(threads[1:]) == (GROUP, QUADS) and threads[0] % WARPS == 0


@frozen
class WarpTile:
    """Rows and columns of the tile of a block, and the warps along both; ``grouped``: four warps work together.

    ``lined``: the columns are eights of several lines.
    """

    rows: int
    columns: int
    along_rows: int
    along_columns: int
    grouped: bool = False
    lined: bool = False

    @property
    def points(self) -> int:
        """How many sums the block has."""
        return self.rows * self.columns

    def fits(self, shape_m: int, shape_n: int) -> bool:
        """Whether each warp has whole blocks of an instruction, or each group of them one."""
        if self.grouped:
            whole = self.along_rows % WARPS == 0 and self.rows == GROUP_ROWS * self.along_rows
            return whole and self.columns in GROUP_COLUMNS and self.along_columns == 1
        return self.rows % (shape_m * self.along_rows) == 0 and self.columns % (shape_n * self.along_columns) == 0

    def of_rows(self) -> Cut:
        """How rows are cut."""
        if self.grouped:
            halves = GROUP_ROWS // GROUP
            return Cut(self.rows, digits=(Digit(GROUP, axis=1), Digit(halves), Digit(self.along_rows, axis=2)))
        rows = GROUP * self.along_rows
        return Cut(self.rows, digits=(Digit(rows, axis=1), Digit(self.rows // rows)))

    def of_columns(self) -> tuple[Cut, Cut | None]:
        """How columns are cut, and lines, where columns are theirs."""
        eight, eights = (Digit(PAIR), Digit(QUADS, axis=0)), self.columns // EIGHT
        if self.grouped:
            return Cut(self.columns, digits=(*eight, Digit(eights))), None
        others = Digit(self.along_columns, axis=2), Digit(eights // self.along_columns)
        if self.lined:
            return Cut(EIGHT, digits=eight), Cut(eights, digits=others)
        return Cut(self.columns, digits=(*eight, *others)), None


# The larger, the more often a warp uses what it reads from shared memory, and the fewer blocks there are.
TILES: Final = (
    WarpTile(128, 128, 2, 2),
    WarpTile(128, 64, 2, 2),
    WarpTile(64, 64, 2, 2),
    WarpTile(64, 32, 2, 2),
    WarpTile(32, 32, 2, 2),
)
# Of products of halves that have so many tiles of it that the last ones do not matter, one block at a time on a
# multiprocessor, where that has room for three tiles of both operands.
WIDE_TILE: Final = WarpTile(128, 256, 2, 4)
WIDE_BLOCKS: Final = 4
WIDE_BYTES: Final = 3 * PAIR * (WIDE_TILE.rows + WIDE_TILE.columns) * (_STEPS * 16 + GROUP)
# Of warpgroups; columns of an instruction are as many as the tile has.
GROUP_COLUMNS: Final = (64, 128, 256)
GROUP_TILES: Final = (
    WarpTile(128, 256, 8, 1, grouped=True),
    WarpTile(128, 128, 8, 1, grouped=True),
    WarpTile(64, 128, 4, 1, grouped=True),
    WarpTile(64, 64, 4, 1, grouped=True),
)
# Where there are fewer rows or columns: the first that fits.
SMALL_TILES: Final = (
    WarpTile(64, 16, 4, 1),
    WarpTile(64, 8, 4, 1),
    WarpTile(32, 16, 2, 1),
    WarpTile(32, 8, 2, 1),
    WarpTile(16, 32, 1, 2),
    WarpTile(16, 16, 1, 1),
    WarpTile(16, 8, 1, 1),
)

# Of sums of several products of matrices: tiles for which operands of all taps may lie in shared memory at a time.
TAPS_TILES: Final = (
    WarpTile(64, 128, 2, 2),
    WarpTile(64, 64, 2, 2),
    WarpTile(64, 32, 2, 2),
    WarpTile(32, 32, 2, 2),
)
# The points of a line that a tile has otherwise, as tiles of several lines are compared with it.
_LINE: Final = 64
# Where they have no room: points of a tile from which on it is worth it to bring operands anew for each tap.  Kernels
# without matrix instructions use what they bring for all taps.
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
            grouped = asked.groups and _is_for_groups(product, layouts_of(scop)) and _are_grouped(points, domain)
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
    if not {product.rows, product.columns} <= members.keys():
        return None
    if not all(band.members[members[name]].coincident for name in (product.rows, product.columns)):
        return None
    sizes = None if asked.sizes is None else {name: cuts[place].size for name, place in members.items()}
    lines = _lines(product) if product.lines in members else None
    if lines is not None and not band.members[members[lines]].coincident:
        lines = None
    if sizes is not None and lines is not None and sizes[product.columns] != EIGHT:
        lines = None
    extents = product.extent(product.rows), product.extent(product.columns)
    if lines is not None:
        extents = extents[0], -(-extents[1] // EIGHT) * EIGHT * product.extent(lines)

    def fitting(tiles: Iterable[WarpTile]) -> list[WarpTile]:
        whole = (tile for tile in tiles if tile.rows and tile.columns and tile.fits(product.shape.m, product.shape.n))
        return [tile for tile in whole if tile.rows <= extents[0] and tile.columns <= extents[1]]

    others = 1
    for name in members.keys() - {product.rows, product.columns, lines}:
        if band.members[members[name]].coincident:
            others *= product.extent(name)

    def blocks(tile: WarpTile) -> int:
        return others * -(-extents[0] // tile.rows) * -(-extents[1] // tile.columns)

    def enough(tiles: list[WarpTile]) -> WarpTile | None:
        return next((tile for tile in tiles if blocks(tile) >= machine.enough_blocks), None)

    if asked.block is not None and not _are_lanes(asked.block):
        return None
    groups = _groups(product, asked, sizes) if _is_for_groups(product, layouts) else []
    by_groups = fitting(groups)
    large, small = (fitting(own) for own in _candidates(product, asked, sizes, lines))
    free = sizes is None and asked.block is None and not product.taps and lines is None
    wide = free and asked.shared >= WIDE_BYTES and product.shape.elements == PAIR
    if wide and blocks(WIDE_TILE) >= WIDE_BLOCKS * machine.enough_blocks:
        large = [*fitting([WIDE_TILE]), *large]
    # Of few tiles, those of single warps are smaller, and more.
    chosen = enough(by_groups) or (by_groups[0] if by_groups and sizes is not None else None)
    return chosen or enough(large) or next(iter(large[-1:] or small[:1]), None)


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
    product: MatrixProduct, asked: Asked, sizes: Mapping[str, int] | None, lines: str | None
) -> tuple[list[WarpTile], list[WarpTile]]:
    """Tiles for single warps, the largest first, and those where there are fewer rows or columns.

    ``lines``: those of which a tile has eight columns each.
    """
    large: Iterable[WarpTile] = TILES
    small: Iterable[WarpTile] = SMALL_TILES
    if sizes is not None:
        rows, columns = sizes[product.rows], sizes[product.columns] * (1 if lines is None else sizes[lines])
        every = (tile for tile in (*TILES, *SMALL_TILES) if asked.block is not None or tile.rows <= rows)
        large, small = (replace(tile, rows=rows, columns=columns) for tile in every), ()
    elif fitting := _with_all_taps(product, asked.shared):
        large, small = ([tile for tile in fitting if tile in tiles] for tiles in (TAPS_TILES, SMALL_TILES))
    elif product.taps:
        large, small = (tile for tile in TILES if tile.points >= _TAPS_POINTS), ()
    if asked.block is not None:
        _, y, z = (*asked.block, 1, 1)[:3]
        large, small = (
            (replace(tile, along_rows=y // GROUP, along_columns=z) for tile in own) for own in (large, small)
        )
    lined = lines is not None
    return [replace(tile, lined=lined) for tile in large], [replace(tile, lined=lined) for tile in small]


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
    changed[members[product.rows]] = tile.of_rows()
    changed[members[product.columns]], lines = tile.of_columns()
    if lines is not None and product.lines is not None:
        changed[members[product.lines]] = lines
    return tuple(changed)


def _lines(product: MatrixProduct) -> str | None:
    """The lines, if tiles of eight columns of several of them have fewer points beyond the result than those of one."""
    if product.lines is None:
        return None
    width, lines, side = product.extent(product.columns), product.extent(product.lines), _LINE
    eights = side // EIGHT
    several = -(-width // EIGHT) * EIGHT * (-(-lines // eights) * eights)
    return product.lines if several < -(-width // side) * side * lines else None


def _with_all_taps(product: MatrixProduct, shared: int) -> list[WarpTile]:
    """The tiles, the largest first, of which two have room in shared memory with the operands of all taps."""
    tiles = (*TAPS_TILES, *SMALL_TILES) if product.taps else ()
    return [tile for tile in tiles if 2 * _bytes(product, tile) <= shared]


def _bytes(product: MatrixProduct, tile: WarpTile) -> int:
    """What the operands of a tile take, with the steps of one instruction."""
    statement, k = product.statement, product.shape.k
    sizes = {product.rows: tile.rows, product.columns: tile.columns, product.steps: k, **product.taps}
    lines = _lines(product)
    if lines is not None:
        sizes |= {product.columns: EIGHT, lines: tile.columns // EIGHT}
    box = statement.domain
    for place, name in enumerate(statement.body.iterators):
        last = isl.Val.int_from_si(box.get_ctx(), sizes.get(name, 1) - 1)
        box = box.upper_bound_val(isl.dim_type.set, place, last)
    found = sum(
        math.prod(sides_of(statement.reads[position].intersect_domain(box).range())) * own.read.type.itemsize
        for position, own in reads_by_position(statement, ())
        if own.read in product.factors
    )
    return found // k * (k + GROUP)


def _are_grouped(points: tuple[Member, ...], domain: isl.UnionSet) -> bool:
    """Whether these are the points that a thread has of a tile on which four warps work together."""
    counts = sorted(extent_of(point.function, domain) for point in points if point.digit)
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
    inside = not grouped and bool(_with_all_taps(product, asked.shared))
    for name, place in members.items():
        if not band.members[place].coincident and name != product.steps:
            changed[place] = Cut(product.taps.get(name, 1) if inside else 1)
    if inside:
        changed[members[product.steps]] = Cut(product.shape.k, within=product.shape.k, innermost=True)
        return tuple(changed)
    # Operands in shared memory are as large as whole blocks only where some tile is whole.
    whole = product.extent(product.steps) // product.shape.k * product.shape.k
    at_a_time = _GROUP_STEPS if grouped else _STEPS
    changed[members[product.steps]] = Cut(min(at_a_time * product.shape.k, whole), within=product.shape.k)
    return tuple(changed)
