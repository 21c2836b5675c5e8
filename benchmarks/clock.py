"""How calls are timed on each target."""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from benchmarks.messages import Sample

# A clock calls a function for about so many seconds, after warming up; the function returns when its work is done.
Clock: TypeAlias = Callable[[Callable[[], object], float], Sample]

# A round has at least so many calls, however long they take.
LEAST_CALLS: Final = 3

# Threads that slept and caches that others filled are awake and warm after this part of the round.
_WARM_UP: Final = 0.25


def wall_clock(call: Callable[[], object], seconds: float) -> Sample:
    """Every call by itself, from its start until its results were let go of; the collector of garbage rests."""
    now = time.perf_counter
    enabled = gc.isenabled()
    gc.disable()
    try:
        warm = now() + _WARM_UP * seconds
        call()
        while now() < warm:
            call()
        times: list[float] = []
        faults = _faults()
        end = now() + (1 - _WARM_UP) * seconds
        while len(times) < LEAST_CALLS or now() < end:
            begun = now()
            call()
            times.append(now() - begun)
        faults = _faults() - faults
    finally:
        if enabled:
            gc.enable()
    return Sample(statistics.median(times), min(times), max(times), len(times), faults / len(times))


def _faults() -> int:
    """Pages that the system provided to this process without reading a disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


CLOCKS: Final[Mapping[str, Clock]] = MappingProxyType({"cpu": wall_clock})


def clock_for(target: str) -> Clock:
    """The clock of a target such as ``cpu`` or ``cpu:x86-64-v3``; ValueError for one that has none."""
    kind = target.partition(":")[0]
    if kind not in CLOCKS:
        raise ValueError(f"nothing is timed on target {target!r}; known: {', '.join(CLOCKS)}")
    return CLOCKS[kind]
