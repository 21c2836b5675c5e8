"""Clocks call, count and see pages; no times are asserted."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from benchmarks.measuring.clock import LEAST_CALLS, clock_for, wall_clock


def test_every_call_is_counted_after_warming_up() -> None:
    calls: list[bool] = []
    sample = wall_clock(lambda: calls.append(gc.isenabled()), 0.01)
    assert LEAST_CALLS <= sample.calls < len(calls)
    assert not any(calls)
    assert gc.isenabled()
    assert 0 < sample.least <= sample.seconds <= sample.most


def test_there_is_a_least_number_of_calls() -> None:
    assert wall_clock(lambda: None, 0.0).calls >= LEAST_CALLS


def test_pages_are_seen() -> None:
    # Large enough to come from the system, whatever was freed before.
    fresh = wall_clock(lambda: np.full(1 << 23, 1.0), 0.0)
    assert fresh.faults >= 1


def test_targets_without_a_clock_are_refused() -> None:
    for waits in (True, False):
        assert clock_for("cpu:x86-64-v3", waits=waits) is wall_clock
        with pytest.raises(ValueError, match="nothing is timed on target 'abacus'; known: cpu, cuda"):
            clock_for("abacus", waits=waits)
