"""GPUs that one can buy, as far as the time of kernels depends on them.

Clocks are the highest that a device runs at (boost), bandwidths those of its data sheet.  Sources:

- A100: *NVIDIA A100 Tensor Core GPU Architecture* (whitepaper, 2020), Table 4; the 80 GB model of the data sheet.
- H100, H200: *NVIDIA H100 Tensor Core GPU Architecture* (whitepaper, 2022), Table 2; H200 data sheet.  Both ran at
  1,980 MHz when they were measured (``benchmarks/results``).
- B200: *NVIDIA Blackwell Architecture Technical Brief* (2024) and the HGX B200 data sheet.
- L4, L40S, RTX 4090: *NVIDIA Ada GPU Architecture* (whitepaper, 2022), data sheets.
- RTX A6000, A10G, RTX 3090 Ti: *NVIDIA Ampere GA102 GPU Architecture* (whitepaper, 2021), data sheets.

Lanes of a multiprocessor are those of the *CUDA Programming Guide*, "Arithmetic Instructions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from tc.base.frozen import frozen

_KIB: Final = 1 << 10
_MIB: Final = 1 << 20


@frozen
class Device:
    """``clock``: Hz.  ``bandwidth``: of its memory, bytes per second.  ``cache``, ``near_cache``: bytes of the cache of
    the whole device, and of a multiprocessor, where shared memory is part of it.  ``cache_bandwidth``: bytes per clock
    that the first delivers to all multiprocessors.

    Of a multiprocessor, for each clock: ``floats``, ``doubles``, ``integers``, ``specials``: operations of its lanes, a
    multiply-add counting as one; ``tensor``: multiply-adds of halves on its tensor cores.
    """

    name: str
    architecture: str
    multiprocessors: int
    clock: float
    bandwidth: float
    cache: int
    near_cache: int
    floats: int
    doubles: int
    tensor: int
    integers: int = 64
    specials: int = 16
    cache_bandwidth: int = 5120

    @property
    def operations(self) -> float:
        """Float32 operations per second, a multiply-add counting as two."""
        return 2 * self.multiprocessors * self.floats * self.clock


_A100: Final = Device("A100", "sm_80", 108, 1.410e9, 2.039e12, 40 * _MIB, 192 * _KIB, 64, 32, 1024)
_H100: Final = Device("H100", "sm_90", 132, 1.980e9, 3.352e12, 50 * _MIB, 256 * _KIB, 128, 64, 2048)
_ADA: Final = Device("RTX 4090", "sm_89", 128, 2.520e9, 1.008e12, 72 * _MIB, 128 * _KIB, 128, 2, 512)
_GA102: Final = Device("RTX A6000", "sm_86", 84, 1.800e9, 0.768e12, 6 * _MIB, 128 * _KIB, 128, 2, 512)

DEVICES: Final[Mapping[str, Device]] = MappingProxyType(
    {
        device.name: device
        for device in (
            _A100,
            _H100,
            replace(_H100, name="H100 PCIe", multiprocessors=114, clock=1.755e9, bandwidth=2.039e12),
            replace(_H100, name="H200", bandwidth=4.8e12),
            Device("B200", "sm_100", 148, 1.965e9, 8.0e12, 126 * _MIB, 256 * _KIB, 128, 64, 4096),
            replace(_ADA, name="L4", multiprocessors=58, clock=2.040e9, bandwidth=0.300e12, cache=48 * _MIB),
            replace(_ADA, name="L40S", multiprocessors=142, bandwidth=0.864e12, cache=96 * _MIB),
            _ADA,
            _GA102,
            replace(_GA102, name="A10G", multiprocessors=80, clock=1.710e9, bandwidth=0.600e12),
        )
    }
)

# The device that kernels of an architecture are predicted for where none is named.
USUAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "sm_80": "A100",
        "sm_86": "RTX A6000",
        "sm_89": "L4",
        "sm_90": "H200",
        "sm_90a": "H200",
        "sm_100": "B200",
        "sm_100a": "B200",
    }
)
