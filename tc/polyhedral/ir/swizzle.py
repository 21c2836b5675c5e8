"""Swizzles of shared memory: pieces of 16 bytes change places, so that eight rows of a matrix lie in different banks.

A matrix is cut into panels of 128 bytes of each of its rows, one behind the other.  In a panel, piece p of row r lies
where piece ``p ^ r % 8`` of the row would (CuTe: ``Swizzle<3,4,3>``; PTX ISA, *Shared Memory Matrix Layout*: the
swizzle of 128 bytes).  Done twice, the latter changes nothing: no two bytes have one place.
"""

from __future__ import annotations

from typing import Final

import islpy as isl

from tc.base.frozen import frozen

# Bytes of a row of a panel, and of eight: arrays begin at multiples of these, so that offsets say what addresses do.
SWIZZLED_ROW: Final = 128
SWIZZLED_ROWS: Final = 1024
_PIECE: Final = 16


@frozen
class Swizzle:
    """Of matrices that lie one behind the other: ``rows`` of so many bytes, a ``row``, each."""

    row: int
    rows: int

    @property
    def panel(self) -> int:
        """Bytes from one panel to the next one."""
        return self.rows * SWIZZLED_ROW

    def in_panels(self, offset: int) -> int:
        """Where a byte would lie, if pieces did not change places."""
        matrix, inside = divmod(offset, self.row * self.rows)
        row, column = divmod(inside, self.row)
        panel, byte = divmod(column, SWIZZLED_ROW)
        return matrix * self.row * self.rows + panel * self.panel + row * SWIZZLED_ROW + byte

    def place(self, offset: int) -> int:
        """Where a byte lies."""
        found = self.in_panels(offset)
        return found ^ found // SWIZZLED_ROW % 8 * _PIECE

    def panels(self, context: isl.Context) -> isl.Map:
        """``in_panels`` as a relation."""
        size, row = self.row * self.rows, f"floor((o mod {self.row * self.rows})/{self.row})"
        column = f"(o mod {self.row})"
        place = f"{size} * floor(o/{size}) + {self.panel} * floor({column}/{SWIZZLED_ROW})"
        place += f" + {SWIZZLED_ROW} * {row} + {column} mod {SWIZZLED_ROW}"
        return isl.Map.read_from_str(context, f"{{ [o] -> [{place}] }}")
