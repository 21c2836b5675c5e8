"""The least times of two functions, each of which runs in turn.

Both run in this process, one after the other, as kernels and libraries do in a model: the threads of one that are still
waiting for work slow the other one down there, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# Rounds, and the seconds after which there are no more of them.
_LEAST: Final = 7
_MOST: Final = 200
SECONDS: Final = 0.25


def least_times(
    first: Callable[[], object], second: Callable[[], object], seconds: float = SECONDS
) -> tuple[float, float]:
    """In seconds, of calls behind one that is not counted.  ``seconds``: after which there are no more of them."""
    first(), second()
    begun, rounds = time.perf_counter(), list[tuple[float, float]]()
    while len(rounds) < _LEAST or (len(rounds) < _MOST and time.perf_counter() - begun < seconds):
        rounds.append((_seconds(first), _seconds(second)))
    return min(one for one, _ in rounds), min(other for _, other in rounds)


def _seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun
