"""Kernels for machines that run grids: what is launched, and with which arguments."""

from __future__ import annotations

import math
from enum import Enum
from typing import Final

from tc.base.frozen import frozen

# Threads of a warp, which run together and exchange registers.
WARP: Final = 32
# Threads of a block: the limits of CUDA (Programming Guide, "Technical Specifications"), in all and along x, y and z.
MOST_THREADS: Final = 1024
MOST_THREADS_ALONG: Final = (1024, 1024, 64)
# Blocks of a grid along x, y and z, likewise.
MOST_BLOCKS: Final = ((1 << 31) - 1, 65535, 65535)
# More shared memory than this has no size of its own in a kernel: the launch gives it (CUDA Programming Guide, "Shared
# Memory" of every architecture since Volta).
STATIC_SHARED: Final = 48 << 10


class Place(Enum):
    """Where the argument of a kernel comes from."""

    BUFFER = "buffer"
    TEMPORARY = "temporary"
    SCALAR = "scalar"
    FAULT = "fault"


@frozen
class Argument:
    """What a kernel is given: the address of a buffer or a temporary, a scalar, or where faults are noted.

    ``number``: of the buffer, temporary or scalar of the program.
    """

    place: Place
    number: int = 0


@frozen
class GridKernel:
    """One kernel: its name, blocks of the grid and threads of a block along x, y and z, and what it is given."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    arguments: tuple[Argument, ...]

    @property
    def threads(self) -> int:
        """Of a block."""
        return math.prod(self.block)

    @property
    def dynamic_bytes(self) -> int:
        """Of the shared memory that a launch on CUDA must ask for."""
        return self.shared_bytes if self.shared_bytes > STATIC_SHARED else 0
