"""What a GPU takes for a call is told from what the process takes for it."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext

import pytest

from tc.runtime.cuda.cuda_driver import CudaDevice
from tc.runtime.views.view import Stream
from tc.tuner.trial import cuda_clock
from tc.tuner.trial.cuda_clock import event_times

CACHE = 1 << 20


class Moment:
    """An event that happened."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def seconds_since(self, earlier: Moment) -> float:
        return self.seconds - earlier.seconds


class Machine:
    """A process and a device with clocks of their own: the device begins what it is told when it is free.

    ``host``: seconds of a call in the process.  ``kernel``: on the device.  ``clearing``: of memory.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, host: float, kernel: float, clearing: float = 30e-6) -> None:
        self.now = self.until = 0.0
        self.host, self.kernel, self.clearing = host, kernel, clearing
        self.calls = self.held = 0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(cuda_clock, "cuda_driver", lambda: self)

    def call(self) -> None:
        self.calls += 1
        self.now += self.host
        self._work(self.kernel)

    def clear(self, _address: int, size: int, _stream: Stream) -> None:
        assert size == 2 * CACHE
        self._work(self.clearing)

    def _work(self, seconds: float) -> None:
        self.until = max(self.until, self.now) + seconds

    def record(self, _stream: Stream, *, timed: bool) -> Moment:
        assert timed
        self.until = max(self.until, self.now)
        return Moment(self.until)

    def synchronize(self) -> None:
        self.now = max(self.now, self.until)

    def on(self, _device: int) -> AbstractContextManager[None]:
        return nullcontext()

    def devices(self) -> tuple[CudaDevice, ...]:
        return (CudaDevice("", (9, 0), 1, 1e9, 1 << 30, CACHE),)

    def allocate(self, _size: int, _stream: Stream) -> int:
        self.held += 1
        return 4096

    def free(self, _address: int, _stream: Stream) -> None:
        self.held -= 1


@pytest.mark.parametrize("kernel", [2e-6, 50e-6, 3e-3])
@pytest.mark.parametrize("host", [1e-6, 150e-6])
def test_the_process_is_not_timed(monkeypatch: pytest.MonkeyPatch, host: float, kernel: float) -> None:
    machine = Machine(monkeypatch, host, kernel)
    found = event_times(machine.call, 0.01)
    assert found == pytest.approx([kernel] * len(found))
    assert machine.held == 0


def test_who_is_nearly_as_quick_as_the_best_is_timed_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where calls take the process much longer than the device."""
    machine = Machine(monkeypatch, host=150e-6, kernel=3e-6)
    assert len(event_times(machine.call, 0.01, quickest=2.5e-6)) > 8


def test_who_cannot_win_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, host=150e-6, kernel=25.0)
    found = event_times(machine.call, 0.1, quickest=1e-3)
    assert len(found) == machine.calls == 1
    assert found[0] == pytest.approx(25.0, rel=1e-3)


def test_calls_longer_than_the_time_there_is_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, host=1e-6, kernel=1.0)
    assert len(event_times(machine.call, 0.1, math.inf)) == 1
