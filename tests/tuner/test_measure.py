"""How long a candidate is timed: as long as it may win."""

from __future__ import annotations

import math
import time

import pytest

from tc.tuner.measure import time_calls


def _sleeping(seconds: float, calls: list[float]) -> None:
    calls.append(seconds)
    time.sleep(seconds)


@pytest.mark.parametrize(
    ("quickest", "samples", "calls"),
    [(math.inf, range(8, 49), range(9, 400)), (0.0009, range(3, 4), range(4, 40)), (0.0001, range(1, 2), range(5, 6))],
)
def test_who_cannot_win_is_not_timed_to_the_end(quickest: float, samples: range, calls: range) -> None:
    """A call of 2 ms, beside nobody, somebody who takes half of it, and somebody who takes a twentieth."""
    made: list[float] = []
    found = time_calls(lambda: _sleeping(0.002, made), 0.2, quickest)
    assert len(found) in samples
    assert len(made) in calls
    assert min(found) >= 0.002


def test_a_slow_first_call_says_nothing() -> None:
    """The threads that a kernel wakes take longer than the kernel."""
    made: list[float] = []
    found = time_calls(lambda: _sleeping(0.0002 if made else 0.004, made), 0.05, 0.0003)
    assert len(found) > 3
    assert max(found) < 0.004


def test_a_long_call_is_made_once_where_it_cannot_win() -> None:
    made: list[float] = []
    assert len(time_calls(lambda: _sleeping(0.02, made), 0.05, 0.003)) == len(made) == 1
