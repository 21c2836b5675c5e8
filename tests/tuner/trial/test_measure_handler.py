"""How long a candidate is timed: as long as it may win."""

from __future__ import annotations

import math
import time

import pytest

from tc.tuner.trial.host_clock import time_calls


class _Clock:
    """Stands still but for the calls that it times, so that a busy machine changes nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
        """The first calls take so many ``seconds``, and all others as many as the last of them."""
        self.calls = 0
        self._now = 0.0
        self._seconds = seconds
        monkeypatch.setattr(time, "perf_counter", lambda: self._now)

    def call(self) -> None:
        self._now += self._seconds[min(self.calls, len(self._seconds) - 1)]
        self.calls += 1


@pytest.mark.parametrize(
    ("quickest", "samples", "calls"),
    [
        (math.inf, range(18, 25), range(90, 120)),
        (0.0009, range(3, 4), range(20, 50)),
        (0.0001, range(1, 2), range(5, 6)),
    ],
)
def test_who_cannot_win_is_not_timed_to_the_end(
    monkeypatch: pytest.MonkeyPatch, quickest: float, samples: range, calls: range
) -> None:
    """A call of 2 ms on a quiet machine, and beside processes that take a half and a twentieth of it."""
    clock = _Clock(monkeypatch, 0.002)
    found = time_calls(clock.call, 0.2, quickest)
    assert len(found) in samples
    assert clock.calls in calls
    assert found == pytest.approx([0.002] * len(found))


def test_a_slow_first_call_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads that a kernel wakes take longer than the kernel."""
    clock = _Clock(monkeypatch, 0.004, 0.0002)
    found = time_calls(clock.call, 0.05, 0.0003)
    assert len(found) > 3
    assert found == pytest.approx([0.0002] * len(found))


def test_a_long_call_is_made_once_where_it_cannot_win(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock(monkeypatch, 0.02)
    assert len(time_calls(clock.call, 0.05, 0.003)) == clock.calls == 1
