"""Kernels for machines that run grids: what is launched, and with which arguments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType

# Threads of a warp, which run together and exchange registers.
WARP: Final = 32
# Threads of a block: the limits of CUDA (Programming Guide, "Technical Specifications"), in all and along x, y and z.
MOST_THREADS: Final = 1024
MOST_THREADS_ALONG: Final = (1024, 1024, 64)
# Blocks of a grid along x, y and z, likewise.
MOST_BLOCKS: Final = ((1 << 31) - 1, 65535, 65535)
# Launches of one kernel in a call, each of which the caller makes.
MOST_LAUNCHES: Final = 1 << 14
# More shared memory than this has no size of its own in a kernel: the launch gives it (CUDA Programming Guide, "Shared
# Memory" of every architecture since Volta).
STATIC_SHARED: Final = 48 << 10


class Place(Enum):
    """Where the argument of a kernel comes from."""

    BUFFER = "buffer"
    TEMPORARY = "temporary"
    SCALAR = "scalar"
    FAULT = "fault"
    STEP = "step"
    MAP = "map"


@frozen
class Argument:
    """What a kernel is given: the address of a buffer or a temporary, a scalar, where faults are noted, or the step
    that it is launched for, as an int32, or how a tensor lies in memory.

    ``number``: of the buffer, temporary or scalar of the program; of steps, how many others are around them; of maps,
    among those of the kernel.
    """

    place: Place
    number: int = 0


@frozen
class TensorMap:
    """How a buffer, the ``operand``, lies in memory, of which boxes are copied to shared memory, 128 bytes of each row.

    ``shape``: elements of the type along each dimension, outermost first; ``strides``: bytes from one to the next, but
    along the last, where they are side by side; ``box``: elements that are copied at once.
    """

    operand: int
    type: ScalarType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]


@frozen
class GridKernel:
    """One kernel: its name, blocks of the grid and threads of a block along x, y and z, and what it is given.

    ``maps``: of the tensors of which it copies boxes; they come first among the arguments.
    """

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    arguments: tuple[Argument, ...]
    maps: tuple[TensorMap, ...] = ()

    @property
    def threads(self) -> int:
        """Of a block."""
        return math.prod(self.block)

    @property
    def dynamic_bytes(self) -> int:
        """Of the shared memory that a launch on CUDA must ask for."""
        return self.shared_bytes if self.shared_bytes > STATIC_SHARED else 0


@frozen
class Steps:
    """The kernels ``first`` to ``last`` are launched for each value of ``range(begin, end, step)``, in order.

    ValueError for numbers that no kernels have, or for more launches than there may be in one call.
    """

    first: int
    last: int
    begin: int
    end: int
    step: int

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last or self.step < 1 or self.end - self.begin > MOST_LAUNCHES * self.step:
            steps = f"range({self.begin}, {self.end}, {self.step})"
            raise ValueError(f"kernels {self.first} to {self.last} cannot be launched for {steps}")

    @property
    def values(self) -> range:
        """The steps."""
        return range(self.begin, self.end, self.step)

    def moved(self, count: int) -> Steps:
        """The same behind so many further kernels."""
        return replace(self, first=self.first + count, last=self.last + count)


def launches(grids: int, steps: Sequence[Steps]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The numbers of so many kernels in the order in which they are launched, each with its steps, outermost first.

    ValueError where two of the ``steps`` share a kernel, or have one that there is not.
    """
    number = 0
    for own in sorted(steps, key=lambda own: own.first):
        if own.first < number or own.last >= grids:
            raise ValueError(f"kernels {own.first} to {own.last} of {grids} cannot be launched for steps")
        yield from ((n, ()) for n in range(number, own.first))
        yield from ((n, (value,)) for value in own.values for n in range(own.first, own.last + 1))
        number = own.last + 1
    yield from ((n, ()) for n in range(number, grids))
