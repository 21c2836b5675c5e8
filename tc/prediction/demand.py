"""``Demand``: what the threads of a block ask of a multiprocessor, counted in warps."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from tc.base.frozen import frozen

# Bytes that memory moves at least, and that a multiprocessor looks up at a time.
SECTOR: Final = 32
LINE: Final = 128


@frozen
class Demand:
    """Of one block, or of part of one.  Instructions are those of warps.

    By pipe: ``fma`` (float32 arithmetic; ``multiply_adds`` of them have two operations for each thread), ``alu``
    (integers, comparisons, addresses), ``special`` (MUFU: reciprocals, powers, conversions of halves), ``double``,
    ``matrix`` (matrix instructions, which do ``tensor`` multiply-adds of halves), ``shuffles``, ``control`` (branches,
    barriers).

    Of memory: ``shared_reads`` and ``shared_writes`` are instructions, ``shared_wavefronts`` the clocks that the banks
    take for them.  ``global_reads``, ``global_writes`` and ``copies`` (asynchronous) are instructions too,
    ``global_lines`` the lines of 128 bytes that they look up, ``global_bytes`` what ``global_lanes`` threads ask for,
    and ``slow_copies`` the instructions that synchronous forms of copies would add.
    Sectors have 32 bytes: ``near`` are read with no cache but what one iteration holds, ``far`` with one for a whole
    block, ``gathered`` those of ``far`` that data choose; ``copied`` are read by asynchronous copies, ``written``.

    ``local_reads``, ``local_writes``: of 128 bytes that a warp has in memory of its threads' own, which is written
    through to the second-level cache.

    Of one thread's path: how often it waits for memory (``global_waits``), for shared memory (``shared_waits``), at
    ``barriers``, for asynchronous copies (``copy_waits``, each shared by the copies that are under way), and how many
    operations wait for one another (``chain``).
    """

    fma: float = 0.0
    multiply_adds: float = 0.0
    alu: float = 0.0
    special: float = 0.0
    double: float = 0.0
    matrix: float = 0.0
    tensor: float = 0.0
    shuffles: float = 0.0
    control: float = 0.0
    shared_reads: float = 0.0
    shared_writes: float = 0.0
    shared_wavefronts: float = 0.0
    global_reads: float = 0.0
    global_writes: float = 0.0
    copies: float = 0.0
    global_lines: float = 0.0
    global_bytes: float = 0.0
    global_lanes: float = 0.0
    near: float = 0.0
    far: float = 0.0
    gathered: float = 0.0
    copied: float = 0.0
    written: float = 0.0
    atomics: float = 0.0
    local_reads: float = 0.0
    local_writes: float = 0.0
    global_waits: float = 0.0
    shared_waits: float = 0.0
    barriers: float = 0.0
    copy_waits: float = 0.0
    chain: float = 0.0

    def plus(self, other: Demand, times: float) -> Demand:
        """Together with so many others."""
        return Demand(*(getattr(self, name) + times * getattr(other, name) for name in NAMES))

    @property
    def requests(self) -> float:
        """Instructions that go to the memory pipe."""
        return self.shared_reads + self.shared_writes + self.global_reads + self.global_writes + self.copies

    @property
    def issued(self) -> float:
        """Instructions in all."""
        own = self.fma + self.alu + self.special + self.double + self.matrix + self.shuffles + self.control
        return own + self.requests

    @property
    def width(self) -> float:
        """Bytes of an access to global memory by one thread; 0 where there is none."""
        return self.global_bytes / self.global_lanes if self.global_lanes else 0.0


NAMES: Final = tuple(field.name for field in fields(Demand))
