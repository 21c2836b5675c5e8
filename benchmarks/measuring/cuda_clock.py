"""How calls are timed on a GPU: with cold caches, by its events or, where these see nothing, by the clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.measuring.messages import Sample
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.tuner.trial.cuda_clock import event_times, eviction

_LEAST_CALLS: Final = 8
_WARM_UP: Final = 3


def event_clock(call: Callable[[], object], seconds: float) -> Sample:
    """Calls of who works on the default stream, from the first kernel to the end of the last one."""
    return _sample(event_times(call, seconds))


def cold_wall_clock(call: Callable[[], object], seconds: float) -> Sample:
    """From the start of a call until it returns, when its work is done: for who works on streams of their own."""
    driver = cuda_driver()
    with driver.on(0), eviction(driver) as evict:
        for _ in range(_WARM_UP):
            call()
        times: list[float] = []
        end = time.perf_counter() + seconds
        while len(times) < _LEAST_CALLS or time.perf_counter() < end:
            evict()
            driver.synchronize()
            begun = time.perf_counter()
            call()
            times.append(time.perf_counter() - begun)
    return _sample(times)


def _sample(times: Sequence[float]) -> Sample:
    return Sample(statistics.median(times), min(times), max(times), len(times), 0.0)
