"""Lines for people."""

from __future__ import annotations

import pytest

from tc.tuner.confirm import Contender
from tc.tuner.console import console, duration
from tc.tuner.outcome import FailureKind
from tc.tuner.progress import Decided, Event, Generation, Started


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(12.3456, "12.3 s"), (0.00123, "1.23 ms"), (4.2e-5, "42 us"), (1e-6, "1 us"), (5e-8, "50 ns")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def said(event: Event) -> list[str]:
    lines: list[str] = []
    console(lines.append)(event)
    return lines


def test_beginnings() -> None:
    assert said(Started("mm", "cpu:x86-64", 123456, 0, None)) == ["mm on cpu:x86-64: 1.2e+05 encodings"]
    assert said(Started("mm", "cpu", 1, 7, 2e-5)) == [
        "mm on cpu: 1.0e+00 encodings; 7 trials are known from before; no call takes less than 20 us here"
    ]


def test_generations() -> None:
    event = Generation(3, 40, 1e-5, 2e-5, 9e-5, {FailureKind.CRASH: 2, FailureKind.WRONG: 1}, 1e-5, 3e-5, 61.4, 1.2e-5)
    (line,) = said(event)
    assert line == (
        "generation 3: 40 trials; best, median, worst 10 us, 20 us, 90 us; 2 crashed, 1 wrong result; "
        "so far 10 us, 3.00x the default, 1.20x the best before; 61 s left"
    )
    assert said(Generation(0, 4, None, None, None, {}, None, None, None, None)) == ["generation 0: 4 trials"]


def test_decisions() -> None:
    contenders = {"default": Contender((2e-5,) * 3, ""), "17": Contender((1e-5,) * 3, "")}
    assert said(Decided(contenders, "17")) == [
        "measured in turns:",
        "        trial 17     10 us, 10 us to 10 us <- wins",
        "         default     20 us, 20 us to 20 us",
    ]
