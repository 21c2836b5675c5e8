"""Registers of a GPU's threads: where totals of partial sums lie, and how many blocks find room beside each other.

All of NVIDIA's architectures since Volta have as many registers; other GPUs are taken for them.
"""

from __future__ import annotations

from typing import Final

from tc.base.frozen import frozen
from tc.base.grid import WARP

# A multiprocessor has so many parts, of so many registers for each lane of a warp, of which a thread gets whole eights.
_PARTS: Final = 4
_REGISTERS: Final = 512
_UNIT: Final = 8
# The most of a thread, and what it takes of them beside its sums.
_MOST: Final = 255
_OTHERS: Final = 40
_MOST_RESIDENT: Final = 16
# So few totals are in registers in any case.
_FEW: Final = 16


@frozen
class ThreadRegisters:
    """Of a kernel: threads of a block, blocks, and how many multiprocessors share these."""

    threads: int
    blocks: int
    multiprocessors: int

    def totals_in_memory(self, sums: int) -> bool:
        """Whether the totals of so many partial sums of each thread leave the registers to these, for want of room.

        What is in memory of a thread's own is written through to the second-level cache.
        """
        return sums > _FEW and not self._fits(2 * sums, 1)

    def kept(self, sums: int) -> int:
        """Registers that so many partial sums take with their totals; 0 where they are few."""
        if sums <= _FEW:
            return 0
        return sums if self.totals_in_memory(sums) else 2 * sums

    def resident(self, kept: int) -> int:
        """Blocks for which the compiler leaves room where sums take so many registers, as far as there are so many.

        Left alone, CUDA's compiler takes a few registers more for what seldom runs, and fewer blocks find room.
        """
        most = min(_MOST_RESIDENT, round(self.blocks / max(1, self.multiprocessors))) if kept else 1
        return next((n for n in range(most, 1, -1) if self._fits(kept, n)), 1)

    def _fits(self, kept: int, blocks: int) -> bool:
        """Whether so many blocks run at a time: their warps are divided among the parts of a multiprocessor."""
        warps = -(-blocks * -(-self.threads // WARP) // _PARTS)
        return kept + _OTHERS <= min(_MOST, _REGISTERS // warps // _UNIT * _UNIT)
