"""Times calls on a GPU: with events around each, and cold caches."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.cuda_driver import CudaDriver, Event
from tc.runtime.views.view import DEFAULT_STREAM
from tc.tuner.trial.messages import GIVE_UP, HOPELESS

# Memory that is written between two calls: so many times what the second-level cache holds.
_TIMES_THE_CACHE: Final = 2
# The device clears memory for so many times as long as the process takes to make a call, so that it never waits for
# the process while a call is timed.
_AHEAD: Final = 2.0
_MOST_CLEARED: Final = 64
# Calls that are on their way at a time, at most.
_BATCH: Final = 8
_WARM_UP: Final = 3


def event_times(
    call: Callable[[], object], seconds: float, quickest: float = math.inf, device: int = 0
) -> tuple[float, ...]:
    """What the default stream of a device takes for calls, each from its first kernel to the end of its last.

    The process is ahead of the device, so that what it takes itself is not seen.  About so many ``seconds`` in all.
    ``quickest``: see ``messages.Time``.
    """
    driver = cuda_driver()
    with driver.on(device), eviction(driver, device) as evict:
        watch = _Watch(driver, call, evict)
        first = watch.first()
        if first >= GIVE_UP * quickest:
            return (first,)
        watch.warm_up()
        (once,) = watch.times(1)
        if once >= GIVE_UP * quickest:
            return (once,)
        batch = min(_BATCH, max(1, int(seconds / max(once, 1e-9))))
        times: list[float] = []
        end = time.perf_counter() + seconds
        while not times or (time.perf_counter() < end and min(times) <= HOPELESS * quickest):
            times.extend(watch.times(batch))
    return tuple(times)


class _Watch:
    """Times calls on the default stream of a driver; ``evict`` clears memory there."""

    def __init__(self, driver: CudaDriver, call: Callable[[], object], evict: Callable[[], None]) -> None:
        self._driver = driver
        self._call = call
        self._evict = evict
        self._rounds = 1

    def first(self) -> float:
        """What the device takes at least for one call, which the process may be late with."""
        begun = self._mark()
        before = time.perf_counter()
        self._call()
        host = time.perf_counter() - before
        ended = self._mark()
        self._driver.synchronize()
        return ended.seconds_since(begun) - host

    def warm_up(self) -> None:
        """Some calls, which say how often memory is to be cleared before one."""
        host: list[float] = []
        cleared: list[float] = []
        for _ in range(_WARM_UP):
            begun = self._mark()
            self._evict()
            ended = self._mark()
            before = time.perf_counter()
            self._call()
            host.append(time.perf_counter() - before)
            self._driver.synchronize()
            cleared.append(ended.seconds_since(begun))
        rounds = math.ceil(_AHEAD * min(host) / max(min(cleared), 1e-9))
        self._rounds = min(_MOST_CLEARED, max(1, rounds))

    def times(self, calls: int) -> list[float]:
        """Seconds of so many calls, which are all on their way at a time."""
        pairs: list[tuple[Event, Event]] = []
        for _ in range(calls):
            for _ in range(self._rounds):
                self._evict()
            begun = self._mark()
            self._call()
            pairs.append((begun, self._mark()))
        self._driver.synchronize()
        return [ended.seconds_since(begun) for begun, ended in pairs]

    def _mark(self) -> Event:
        return self._driver.record(DEFAULT_STREAM, timed=True)


@contextmanager
def eviction(driver: CudaDriver, device: int = 0) -> Iterator[Callable[[], None]]:
    """Writes more than the second-level cache of a device holds; in the block the collector of garbage rests."""
    size = _TIMES_THE_CACHE * driver.devices()[device].cache
    memory = driver.allocate(size, DEFAULT_STREAM)
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield lambda: driver.clear(memory, size, DEFAULT_STREAM)
    finally:
        if enabled:
            gc.enable()
        driver.free(memory, DEFAULT_STREAM)
