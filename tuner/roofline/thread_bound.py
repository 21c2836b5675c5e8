"""``ThreadBound``: the lower bound of a kernel's time that follows from the number of its threads, before it runs.

A GPU runs a kernel to its end, which takes minutes where one thread does all the work.  The roofline knows nothing of
threads: it is the bound of the quickest kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.base.grid import GridKernel
from tc.tuner.roofline.roofline import Work

# A thread has at most one instruction per cycle (CUDA Programming Guide, "Hardware Multithreading"): two
# multiplications and additions of halves, or 16 bytes between memory and registers.  Kernels have no matrix or bulk
# copy instructions.
_OPERATIONS: Final = 4
_BYTES: Final = 16


@frozen
class ThreadBound:
    """``work``: of a call.  ``clock``: cycles per second of the GPU, at most."""

    work: Work
    clock: float

    def seconds(self, grids: Sequence[GridKernel]) -> float:
        """Seconds that no call falls below whose kernels these are; 0 for no kernels."""
        threads = max((math.prod(grid.grid) * grid.threads for grid in grids), default=0)
        instructions = max(self.work.operations / _OPERATIONS, self.work.moved / _BYTES)
        return instructions / (threads * self.clock) if threads else 0.0
