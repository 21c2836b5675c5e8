"""Lines for people."""

from __future__ import annotations

import pytest

from tc.base.counted import duration
from tc.tuner.session.confirm import Contender
from tc.tuner.session.console import console
from tc.tuner.session.progress_events import Decided, Event, Generation, Standing, Started, Trying
from tc.tuner.trial.trial_outcome import FailureKind


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
    assert said(Started("mm", "cpu", 1, 1, None)) == ["mm on cpu: 1.0e+00 encodings; 1 trial is known from before"]
    assert said(Started("mm", "cpu", 1, 7, 2e-5)) == [
        "mm on cpu: 1.0e+00 encodings; 7 trials are known from before; no call takes less than 20 us here"
    ]


def test_generations() -> None:
    failures = {FailureKind.CRASH: 2, FailureKind.WRONG: 1}
    standing = Standing(0.1234, 61.4)
    event = Generation(3, 40, 1e-5, 2e-5, 9e-5, failures, 1e-5, 3e-5, 1.2e-5, standing)
    (line,) = said(event)
    assert line == (
        "generation 3: 40 trials; best, median, worst 10 us, 20 us, 90 us; 2 crashed, 1 wrong result; "
        "so far 10 us, 3.00x the default, 1.20x the best before; 12 % of the budget, 1m1s left"
    )
    wrong = {FailureKind.WRONG: 2, FailureKind.TIMEOUT: 2}
    assert said(Generation(0, 1, None, None, None, wrong, None, None, None, Standing(0, None))) == [
        "generation 0: 1 trial; 2 wrong results, 2 timed out; 0 % of the budget"
    ]


def test_how_far_a_search_is_stands_below_the_lines() -> None:
    lines: list[str] = []
    shown: list[str] = []
    listen = console(lines.append, shown.append)
    listen(Trying(1, None, Standing(0.0, None)))
    listen(Trying(117, 1.5e-5, Standing(0.424, 11520.0)))
    assert shown == ["0 % of the budget; 1 trial", "42 % of the budget, 3h12m left; 117 trials; best so far 15 us"]
    assert lines == []


def test_decisions() -> None:
    contenders = {"default": Contender((2e-5,) * 3, ""), "17": Contender((1e-5,) * 3, "")}
    assert said(Decided(contenders, "17")) == [
        "measured in turns:",
        "        trial 17     10 us, 10 us to 10 us <- wins",
        "         default     20 us, 20 us to 20 us",
    ]
