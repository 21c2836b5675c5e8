"""How calls are timed on each target."""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from benchmarks.measuring.messages import Sample

# A clock calls a function for about so many seconds, after warming up.
Clock: TypeAlias = Callable[[Callable[[], object], float], Sample]

# A round has at least so many calls, however long they take.
LEAST_CALLS: Final = 3

# Threads that slept and caches that others filled are awake and warm after this part of the round.
_WARM_UP: Final = 0.25

_KINDS: Final = ("cpu", "cuda")


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


def kind_of(target: str) -> str:
    """``cpu`` or ``cuda``, for a target such as ``cpu:x86-64-v3``; ValueError for one that is not timed."""
    kind = target.partition(":")[0]
    if kind not in _KINDS:
        raise ValueError(f"nothing is timed on target {target!r}; known: {', '.join(_KINDS)}")
    return kind


def clock_for(target: str, *, waits: bool) -> Clock:
    """The clock of a target; ValueError for one that has none.

    ``waits``: a call returns when its work is done, whatever stream of a GPU that was on.
    """
    if kind_of(target) == "cpu":
        return wall_clock
    from benchmarks.measuring.cuda_clock import cold_wall_clock, event_clock

    return cold_wall_clock if waits else event_clock
