"""Swizzles of shared memory: pieces of 16 bytes change places, so that eight rows of a matrix lie in different banks.

Piece p of row r lies where piece ``p ^ r % 8`` of the row would (CuTe: ``Swizzle<3,4,3>``; PTX ISA, *Shared Memory
Matrix Layout*: the swizzle of 128 bytes).  Done twice, it changes nothing: no two bytes have one place.
"""

from __future__ import annotations

from typing import Final

# Bytes of a row, and of eight rows: arrays begin at multiples of these, so that offsets say what addresses do.
SWIZZLED_ROW: Final = 128
SWIZZLED_ROWS: Final = 1024


def swizzled(offset: int) -> int:
    """Where the byte at an offset lies."""
    return offset ^ offset // SWIZZLED_ROW % 8 * 16
