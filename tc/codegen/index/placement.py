"""Where buffers lie in memory that several of them share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tc.polyhedral.execution.shared_buffers import shared_buffers
from tc.polyhedral.ir.loops import Buffer, LoopTree
from tc.polyhedral.ir.swizzle import SWIZZLED_ROWS

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


def shared_places(tree: LoopTree) -> tuple[tuple[tuple[Buffer, int], ...], int]:
    """The buffers in a tree that the threads of a block share, with the offset in bytes of each, and the size of all.

    Proofs know buffers by their names: two of them must not have bytes in common, even one after the other.  What is
    swizzled begins where that moves addresses as offsets.
    """
    places: dict[str, tuple[Buffer, int]] = {}
    size = 0
    for buffer in shared_buffers(tree):
        if buffer.name not in places:
            size = -(-size // SWIZZLED_ROWS) * SWIZZLED_ROWS if buffer.swizzle else size
            places[buffer.name] = buffer, size
            size += aligned(max(buffer.layout.span, 1) * buffer.layout.type.itemsize)
    return tuple(places.values()), size
