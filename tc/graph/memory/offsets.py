"""Offsets of blocks in one arena: first fit, improved by branch and bound, and by OR-Tools where that is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.memory.blocks import Block, arena_size, live_peak
from tc.graph.memory.canonical import improved
from tc.graph.memory.cp_sat import require_ortools, solved
from tc.graph.memory.first_fit import first_fit
from tc.graph.memory.placing import USUAL, Placing

# Vectors are loaded at multiples of it, and threads write to no line of the cache that another one writes to.
ALIGNMENT: Final = 64
_NANOSECONDS: Final = 10**9


def placed(blocks: Sequence[Block], placing: Placing = USUAL, *, alignment: int = ALIGNMENT) -> tuple[int, ...]:
    """Offsets at which no two blocks that are needed in one step overlap; the same ones for the same blocks."""
    if placing.solver == "ortools":
        require_ortools()
    rounded = [Block(b.name, -(-b.bytes // alignment) * alignment, b.first, b.last) for b in blocks if b.bytes]
    if not rounded:
        return (0,) * len(blocks)
    found = first_fit(rounded)
    if arena_size(rounded, found) > live_peak(rounded):
        work = int(placing.seconds * _NANOSECONDS)
        found = improved(rounded, found, work)
        if placing.solver == "ortools":
            found = solved(rounded, found, placing.seconds, unit=alignment)
    offsets = iter(found)
    return tuple(next(offsets) if block.bytes else 0 for block in blocks)
