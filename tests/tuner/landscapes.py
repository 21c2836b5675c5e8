"""Made-up kernels: how long options would take, without compiling anything."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from tc.targets.options import CpuOptions, Fusion, GpuOptions, Options
from tc.tuner.search.replay import key
from tc.tuner.space.nest import Nest
from tc.tuner.space.space import Space
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured, Outcome

Landscape: TypeAlias = Callable[[Options], Outcome]

# A matrix multiplication.
NEST: Final = Nest({"m": 128, "n": 1024, "k": 1000}, depth=3, independent=2, reduced=("k",))
SPACE: Final = Space.of(CpuOptions, NEST)
GPU_SPACE: Final = Space.of(GpuOptions, NEST)


def measured(microseconds: float) -> Measured:
    """One sample."""
    return Measured(microseconds * 1e-6, (microseconds * 1e-6,))


def chance(options: Options, salt: str) -> float:
    """A number from 0 to 1 that is always the same for the same options."""
    digest = hashlib.sha256(f"{salt} {key(options)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / (1 << 64)


def _doublings(size: int, best: int) -> float:
    return abs(math.log2(max(size, 1) / best))


def _lists(options: CpuOptions) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return options.schedule.tile or (), options.register_tile or ()


def convex(options: Options) -> Outcome:
    """The farther from the best, the slower, in every gene by itself."""
    assert isinstance(options, CpuOptions)
    tile, registers = _lists(options)
    microseconds = 100.0 + 20 * abs(len(tile) - 3) + 20 * abs(len(registers) - 2)
    microseconds += sum(5 * _doublings(size, best) for size, best in zip(tile, (32, 256, 125), strict=False))
    microseconds += sum(8 * _doublings(size, best) for size, best in zip(registers, (6, 16), strict=False))
    microseconds += 3 * _doublings(options.schedule.unroll, 8) + 10 * _doublings(options.packed_operands, 1 << 16)
    microseconds += 30 * (not options.vectorize) + 15 * (options.schedule.fusion is not Fusion.MAXIMAL)
    return measured(microseconds)


def deceptive(options: Options) -> Outcome:
    """Fewer and smaller tiles look better and better, but the best lie at the other end, behind a hill."""
    assert isinstance(options, CpuOptions)
    tile, registers = _lists(options)
    usual = 300.0 + 10 * len(tile) + 10 * len(registers) + 20 * (not options.vectorize)
    if len(tile) >= 2 and len(registers) == 2 and tile[0] >= 16:
        distance = _doublings(tile[0], 128) + _doublings(tile[1], 512) + _doublings(registers[0], 4)
        return measured(100 + 15 * distance + 20 * (not options.vectorize))
    return measured(usual)


def brittle(options: Options) -> Outcome:
    """Convex, but six of ten fail, in several ways, for no reason that can be learned."""
    share = chance(options, "fails")
    if share < 0.6:
        kind = (FailureKind.ILLEGAL, FailureKind.COMPILE, FailureKind.TIMEOUT, FailureKind.WRONG)[int(share * 4 / 0.6)]
        return Failed(kind, "made to fail")
    return convex(options)


def noisy(options: Options) -> Outcome:
    """Convex, and up to a tenth slower by chance."""
    quiet = convex(options)
    assert isinstance(quiet, Measured)
    return measured(quiet.seconds * 1e6 * (1 + 0.1 * chance(options, "noise")))


def narrow(options: Options) -> Outcome:
    """Two sizes must change together: the product of the register tile has to fit, and should be as large as can be."""
    assert isinstance(options, CpuOptions)
    tile, registers = _lists(options)
    elements = math.prod(registers)
    spilled = 50.0 * max(0.0, math.log2(elements / 96)) if elements else 0.0
    microseconds = 100 + spilled + 30 * _doublings(elements, 96) + 10 * abs(len(registers) - 2)
    microseconds += sum(4 * _doublings(size, 64) for size in tile) + 5 * abs(len(tile) - 2)
    return measured(microseconds + 10 * _doublings(options.register_accumulators, 128))


LANDSCAPES: Final[Mapping[str, Landscape]] = MappingProxyType(
    {"convex": convex, "deceptive": deceptive, "brittle": brittle, "noisy": noisy, "narrow": narrow}
)
