"""Tiles of products for warps: each lane has the points whose sums a matrix instruction keeps in its registers.

A block has 4 threads along x, multiples of 8 along y and warps along z, so that the lane is ``x + 4 * (y % 8)``.  Rows
are dealt out along y, one by one; columns in pairs along x, and in eights along z.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.strides import iterator_of
from tc.polyhedral.gpu.tensor.products import MatrixProduct, matrix_product
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Member
from tc.polyhedral.transform.digits import Digit
from tc.polyhedral.transform.tile import ChooseCuts, Cut, is_counted
from tc.targets.machine import GpuMachine

# Lanes along x, each with two neighbouring columns, and along y, each with a row.
QUADS: Final = 4
PAIR: Final = 2
GROUP: Final = 8
# Instructions, one after the other, for whose steps operands lie in shared memory at a time.
_STEPS: Final = 2


@frozen
class WarpTile:
    """Rows and columns of the tile of a block, and the warps along both."""

    rows: int
    columns: int
    along_rows: int
    along_columns: int

    def fits(self, shape_m: int, shape_n: int) -> bool:
        """Whether each warp has whole blocks of an instruction."""
        return self.rows % (shape_m * self.along_rows) == 0 and self.columns % (shape_n * self.along_columns) == 0

    def digits(self) -> tuple[tuple[Digit, ...], tuple[Digit, ...]]:
        """Of rows and of columns."""
        rows, columns = GROUP * self.along_rows, PAIR * QUADS * self.along_columns
        return (
            (Digit(rows, axis=1), Digit(self.rows // rows)),
            (
                Digit(PAIR),
                Digit(QUADS, axis=0),
                Digit(self.along_columns, axis=2),
                Digit(self.columns // columns),
            ),
        )


# The larger, the more often a warp uses what it reads from shared memory, and the fewer blocks there are.
TILES: Final = (
    WarpTile(128, 128, 2, 2),
    WarpTile(128, 64, 2, 2),
    WarpTile(64, 64, 2, 2),
    WarpTile(64, 32, 2, 2),
    WarpTile(32, 32, 2, 2),
)
# Where there are fewer rows or columns.
SMALL_TILES: Final = (WarpTile(32, 16, 2, 1), WarpTile(16, 32, 1, 2), WarpTile(16, 16, 1, 1), WarpTile(16, 8, 1, 1))


def with_warp_tiles(
    choose: ChooseCuts, scop: Scop, machine: GpuMachine, sizes: tuple[int, ...] | None, block: tuple[int, ...] | None
) -> ChooseCuts:
    """The cuts under which warps multiply matrices, where that is the most of a nest; all others as they are.

    ``sizes``, ``block``: those that were asked for, which stay what they are.
    """

    def chosen(band: Band, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> tuple[Cut, ...]:
        cuts = choose(band, domain, depth, points)
        product = matrix_product(scop, machine.matrix_shapes, domain)
        if product is None:
            return cuts
        members = _members(band, product)
        if depth == 0:
            tile = _tile(cuts, band, members, product, machine, explicit=sizes is not None, block=block)
            return cuts if tile is None else _of_tile(cuts, band, members, product, tile, domain)
        if product.steps in members and any(point.digit for point in points):
            return _with_steps(cuts, band, members, product)
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
    *,
    explicit: bool,
    block: tuple[int, ...] | None,
) -> WarpTile | None:
    """The tile of a band with rows and columns; None where it has none, or other sizes were asked for."""
    if not {product.rows, product.columns} <= members.keys():
        return None
    if not all(band.members[members[name]].coincident for name in (product.rows, product.columns)):
        return None
    if explicit:
        rows, columns = (cuts[members[name]].size for name in (product.rows, product.columns))
        candidates = [
            replace(tile, rows=rows, columns=columns)
            for tile in (*TILES, *SMALL_TILES)
            if block is not None or tile.rows <= rows
        ]
    else:
        candidates = [*TILES, *SMALL_TILES]
    if block is not None:
        x, y, z = (*block, 1, 1)[:3]
        if x != QUADS or y % GROUP:
            return None
        candidates = [replace(tile, along_rows=y // GROUP, along_columns=z) for tile in candidates]
    extents = product.extent(product.rows), product.extent(product.columns)
    fitting = [
        tile
        for tile in candidates
        if tile.rows and tile.fits(product.shape.m, product.shape.n)
        if tile.rows <= extents[0] and tile.columns <= extents[1]
    ]
    others = 1
    for name in members:
        if name not in (product.rows, product.columns) and band.members[members[name]].coincident:
            others *= product.extent(name)

    def blocks(tile: WarpTile) -> int:
        return others * -(-extents[0] // tile.rows) * -(-extents[1] // tile.columns)

    large = [tile for tile in fitting if tile not in SMALL_TILES]
    enough = next((tile for tile in large if blocks(tile) >= machine.enough_blocks), None)
    return enough or next(iter(large[-1:] or fitting[:1]), None)


def _of_tile(
    cuts: tuple[Cut, ...],
    band: Band,
    members: Mapping[str, int],
    product: MatrixProduct,
    tile: WarpTile,
    domain: isl.UnionSet,
) -> tuple[Cut, ...]:
    rows, columns = tile.digits()
    changed = list(cuts)
    for place, member in enumerate(band.members):
        if member.coincident and extent_of(member.function, domain) > 0:
            changed[place] = replace(cuts[place], size=1, within=0, threads=0)
    changed[members[product.rows]] = Cut(tile.rows, digits=rows)
    changed[members[product.columns]] = Cut(tile.columns, digits=columns)
    return _with_steps(tuple(changed), band, members, product)


def _with_steps(
    cuts: tuple[Cut, ...], band: Band, members: Mapping[str, int], product: MatrixProduct
) -> tuple[Cut, ...]:
    """Whole steps of instructions lie in shared memory at a time, and other loops that reduce stand around them."""
    if product.steps not in members:
        return cuts
    changed = list(cuts)
    for name, place in members.items():
        if not band.members[place].coincident and name != product.steps:
            changed[place] = Cut(1)
    # Operands in shared memory are as large as whole blocks only where some tile is whole.
    whole = product.extent(product.steps) // product.shape.k * product.shape.k
    changed[members[product.steps]] = Cut(min(_STEPS * product.shape.k, whole), within=product.shape.k)
    return tuple(changed)
