"""Limits of multiprocessors of GPUs, by architecture, and the occupancy of a kernel.

The numbers are those of NVIDIA's *CUDA Programming Guide* (technical specifications per compute capability) and of the
architecture traits in its libcu++.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from tc.base.frozen import frozen
from tc.base.grid import WARP

# Registers are given to warps in units of so many; memory that blocks share, in bytes.
_REGISTER_UNIT: Final = 256


@frozen
class Multiprocessor:
    """The most threads, blocks and bytes of shared memory on one multiprocessor at a time.

    ``reserved``: bytes of shared memory that the driver takes from every block.  ``registers``: of 32 bits.
    """

    threads: int
    blocks: int
    shared: int
    reserved: int = 1024
    registers: int = 1 << 16

    @property
    def block_shared(self) -> int:
        """The most bytes of shared memory of one block."""
        return self.shared - self.reserved

    def resident(self, threads: int, registers: int, shared: int) -> int:
        """Blocks that run at a time, with so many threads, registers of each thread, and bytes of shared memory."""
        warps = -(-threads // WARP)
        unit = 1024 if self.reserved else 256
        bytes = -(-(shared + self.reserved) // unit) * unit
        limits = [self.blocks, self.threads // (warps * WARP)]
        if registers:
            own = -(-registers * WARP // _REGISTER_UNIT) * _REGISTER_UNIT
            limits.append(_quarters(self.registers // own) // warps)
        if bytes:
            limits.append(self.shared // bytes)
        return min(limits)

    def occupancy(self, threads: int, registers: int, shared: int) -> float:
        """The share of the multiprocessor's warps that are there to be run; ``resident`` describes the arguments."""
        warps = -(-threads // WARP)
        return self.resident(threads, registers, shared) * warps * WARP / self.threads


def _quarters(warps: int) -> int:
    """Warps are dealt out to four schedulers, each with its own registers."""
    return warps // 4 * 4


_TURING: Final = Multiprocessor(1024, 16, 64 << 10, reserved=0)
_AMPERE: Final = Multiprocessor(2048, 32, 164 << 10)
_HOPPER: Final = Multiprocessor(2048, 32, 228 << 10)
_ADA: Final = Multiprocessor(1536, 24, 100 << 10)

MULTIPROCESSORS: Final[Mapping[str, Multiprocessor]] = MappingProxyType(
    {
        "sm_75": _TURING,
        "sm_80": _AMPERE,
        "sm_86": replace(_ADA, blocks=16),
        "sm_87": replace(_AMPERE, threads=1536, blocks=16),
        "sm_88": replace(_ADA, blocks=16),
        "sm_89": _ADA,
        "sm_90": _HOPPER,
        "sm_90a": _HOPPER,
        "sm_100": _HOPPER,
        "sm_100a": _HOPPER,
        "sm_103": _HOPPER,
        "sm_110": replace(_HOPPER, threads=1536, blocks=24),
        "sm_120": _ADA,
        "sm_121": _ADA,
    }
)
