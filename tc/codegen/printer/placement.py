"""Where buffers lie in memory that several of them share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tc.polyhedral.ir.loops import Buffer

# Bytes: a cache line, and the widest vector.
ALIGNMENT: Final = 64


def aligned(size: int) -> int:
    """``size`` bytes, rounded up to the alignment of buffers."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def side_by_side(buffers: Iterable[Buffer]) -> tuple[dict[str, int], int]:
    """The offset in bytes of every buffer, one after another, and the size of them all."""
    offsets: dict[str, int] = {}
    size = 0
    for buffer in buffers:
        offsets[buffer.name] = size
        size += aligned(buffer.layout.span * buffer.layout.type.itemsize)
    return offsets, size
