"""``Bounds``: the lower bounds that a search knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.base.grid import GridKernel
from tc.tuner.roofline.bound import Bound
from tc.tuner.roofline.thread_bound import ThreadBound


@frozen
class Bounds:
    """``call``: of every call.  ``threads``: of a call of a kernel whose threads are known.  None: not known."""

    call: Bound | None = None
    threads: ThreadBound | None = None

    def of_grids(self, grids: Sequence[GridKernel]) -> float:
        """Seconds that no call of these kernels falls below; 0 where nothing is known."""
        return 0.0 if self.threads is None else self.threads.seconds(grids)


NO_BOUNDS: Final = Bounds()
