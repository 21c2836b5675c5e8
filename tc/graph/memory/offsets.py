"""Offsets of blocks in one arena: first fit, improved by branch and bound, and by OR-Tools where that is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.graph.memory.blocks import Block, arena_size, live_peak
from tc.graph.memory.canonical import improved
from tc.graph.memory.cp_sat import require_ortools, solved
from tc.graph.memory.first_fit import first_fit

# Vectors are loaded at multiples of it, and threads write to no line of the cache that another one writes to.
ALIGNMENT: Final = 64
_NANOSECONDS: Final = 10**9
Solver: TypeAlias = Literal["search", "ortools"]


@frozen
class Placing:
    """How offsets are looked for where first fit needs more than the least arena.

    ``solver``: ``search`` is branch and bound; ``ortools`` gives what that finds to the CP-SAT solver of OR-Tools, for
    at most a few hundred blocks.  ``seconds``: about how long a search takes at most; it counts operations, so that
    equal blocks have equal offsets on all machines.
    """

    solver: Solver = "search"
    seconds: float = 0.5

    def __post_init__(self) -> None:
        if self.solver not in ("search", "ortools"):
            raise OptionsError(f"offsets are found by `search` or `ortools`, not by {self.solver!r}")
        if not self.seconds >= 0:
            raise OptionsError(f"a search for offsets takes 0 seconds or more, not {self.seconds!r}")


# Where nothing else is said.
USUAL: Final = Placing()


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
