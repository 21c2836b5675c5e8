"""Tiles of products for warps: each lane has the points whose sums a matrix instruction keeps in its registers.

A block has 4 threads along x, multiples of 8 along y and warps along z, so that the lane is ``x + 4 * (y % 8)``.  Rows
are dealt out along y, one by one; columns in pairs along x, and in eights along z.

Where four warps run an instruction together, all warps are along z: each of them has 16 rows, in eights along y, and
all columns.

Columns of short lines, as of an image, are eights of several lines: a tile has eight columns of each.  So are rows,
with all warps along z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tc.base.frozen import frozen
from tc.polyhedral.transform.digits import Digit
from tc.polyhedral.transform.tile import Cut

# Lanes along x, each with two neighbouring columns, and along y, each with a row.
QUADS: Final = 4
PAIR: Final = 2
GROUP: Final = 8
# As many columns, and as many rows, do lanes have side by side.
EIGHT: Final = 8
# Instructions, one after the other, for whose steps operands lie in shared memory at a time.
STEPS: Final = 2
# Warps of a group, and rows of each: one instruction has a block of each group.
WARPS: Final = 4
GROUP_ROWS: Final = 16


def are_warpgroups(threads: Sequence[int]) -> bool:
    """Whether a block of so many threads, x last, has only whole groups of warps along z."""
    return len(threads) == 3 and tuple(threads[1:]) == (GROUP, QUADS) and threads[0] % WARPS == 0


@frozen
class WarpTile:
    """Rows and columns of the tile of a block, and the warps along both; ``grouped``: four warps work together.

    ``lined``: the columns are eights of several lines; ``lined_rows``: the rows are, and all warps lie along z, each
    with all columns.
    """

    rows: int
    columns: int
    along_rows: int
    along_columns: int
    grouped: bool = False
    lined: bool = False
    lined_rows: bool = False

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

    def over_lines(self) -> WarpTile:
        """The tile with eights of several lines as rows."""
        warps = min(self.along_rows * self.along_columns, self.rows // GROUP_ROWS)
        return replace(self, along_rows=warps, along_columns=1, lined_rows=True)

    def of_rows(self) -> tuple[Cut, Cut | None]:
        """How rows are cut, and lines, where rows are theirs."""
        if self.grouped:
            halves = GROUP_ROWS // GROUP
            return Cut(self.rows, digits=(Digit(GROUP, axis=1), Digit(halves), Digit(self.along_rows, axis=2))), None
        rows = GROUP * self.along_rows
        if self.lined_rows:
            eights = Digit(self.along_rows, axis=2), Digit(self.rows // rows)
            return Cut(GROUP, digits=(Digit(GROUP, axis=1),)), Cut(self.rows // GROUP, digits=eights)
        return Cut(self.rows, digits=(Digit(rows, axis=1), Digit(self.rows // rows))), None

    def of_columns(self) -> tuple[Cut, Cut | None]:
        """How columns are cut, and lines, where columns are theirs."""
        eight, eights = (Digit(PAIR), Digit(QUADS, axis=0)), self.columns // EIGHT
        if self.grouped or self.lined_rows:
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
WIDE_BYTES: Final = 3 * PAIR * (WIDE_TILE.rows + WIDE_TILE.columns) * (STEPS * 16 + GROUP)
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
    WarpTile(128, 64, 2, 2),
    WarpTile(64, 64, 2, 2),
    WarpTile(64, 32, 2, 2),
    WarpTile(32, 32, 2, 2),
)
