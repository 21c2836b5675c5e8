"""``KernelCount``: what a kernel asks for, as a prediction of its time needs it."""

from __future__ import annotations

import math

from tc.base.frozen import frozen
from tc.prediction.demand import Demand


@frozen
class BlockKind:
    """So many blocks, each of which asks for the same."""

    count: int
    demand: Demand


@frozen
class KernelCount:
    """One kernel: blocks, outermost dimension first, threads of a block, and how often it is launched.

    ``kinds``: the most frequent one first.  ``read``, ``written``: bytes of the tensors in global memory that it reads
    without an index that data choose, and writes; ``chosen``: those of which data choose elements.  ``passed``: of
    ``read``, what kernels before it have written.  ``shared``: bytes of a block's shared memory.  ``kept``: elements
    that a thread has in arrays of its own, in words of 32 bits.  ``ahead``: threads read operands from shared memory
    while they compute with those before.
    """

    grid: tuple[int, ...]
    threads: int
    launches: int
    kinds: tuple[BlockKind, ...]
    read: int
    written: int
    chosen: int
    passed: int
    shared: int
    kept: int
    ahead: bool = False

    @property
    def blocks(self) -> int:
        """Of one launch."""
        return math.prod(self.grid)

    @property
    def demand(self) -> Demand:
        """Of all blocks of one launch."""
        found = Demand()
        for kind in self.kinds:
            found = found.plus(kind.demand, kind.count)
        return found
