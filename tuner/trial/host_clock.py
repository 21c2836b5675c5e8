"""Times calls on a CPU: with warm caches, in samples that are long enough for the clock."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from typing import Final

from tc.tuner.trial.messages import GIVE_UP, HOPELESS

# A sample is long enough for the clock, and there are enough of them to tell how far they spread.
_LEAST_SAMPLE: Final = 1e-4
_SAMPLES: Final = 24
_LEAST_SAMPLES: Final = 3
_WARM_UP: Final = 0.2
# The first call of a kernel finds its code and its threads asleep, which takes longer than many kernels; so a few more
# calls have a say where they cost nothing.
_SHORT: Final = 5e-3
_MORE_CALLS: Final = 4


def time_calls(call: Callable[[], object], seconds: float, quickest: float) -> tuple[float, ...]:
    """Seconds of a call in samples that take about so many ``seconds`` in all, after warming up.

    A sample is the mean of as many calls as the clock needs.  ``quickest``: see ``Time``.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        once = time_once(call)
        if once < _SHORT:
            once = min(once, *(time_once(call) for _ in range(_MORE_CALLS)))
        if once >= GIVE_UP * quickest:
            return (once,)
        warm = time.perf_counter() + _WARM_UP * seconds
        while time.perf_counter() < warm:
            once = min(once, time_once(call))
        rest = (1 - _WARM_UP) * seconds
        calls = max(1, math.ceil(max(_LEAST_SAMPLE, rest / _SAMPLES) / max(once, 1e-9)))
        samples: list[float] = []
        end = time.perf_counter() + rest
        while len(samples) < _LEAST_SAMPLES or (
            time.perf_counter() < end and len(samples) < 2 * _SAMPLES and min(samples) <= HOPELESS * quickest
        ):
            samples.append(_timed(call, calls))
        return tuple(samples)
    finally:
        if enabled:
            gc.enable()


def time_once(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    return _timed(call, 1)


def _timed(call: Callable[[], object], calls: int) -> float:
    begun = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begun) / calls
