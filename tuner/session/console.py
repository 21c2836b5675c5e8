"""Progress for people: a line for every generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, assert_never

from tc.base.counted import bytes_text, counted, duration
from tc.tuner.session.progress_events import (
    Decided,
    Event,
    Generation,
    Judging,
    Listener,
    Standing,
    Start,
    Started,
    Trying,
)
from tc.tuner.trial.time_span import rough_text
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured, counted_failures

# Bytes that are worth a word.
_MUCH: Final = 1 << 28


def console(say: Callable[[str], None], show: Callable[[str], None] = lambda _text: None) -> Listener:
    """A listener that says what happens, line by line, and shows meanwhile how far the search is."""

    def listen(event: Event) -> None:
        match event:
            case Judging():
                if event.bytes >= _MUCH:
                    say(f"the oracle computes what is right, with {bytes_text(event.bytes)} of memory")
            case Started():
                say(_started(event))
            case Start():
                say(_start(event))
            case Trying():
                show(_trying(event))
            case Generation():
                say(_generation(event))
            case Decided():
                for line in _decided(event):
                    say(line)
            case _:
                assert_never(event)

    return listen


def _started(event: Started) -> str:
    parts = [f"{event.definition} on {event.target}: {event.encodings:.1e} encodings"]
    if event.known:
        are = "is" if event.known == 1 else "are"
        parts.append(f"{counted(event.known, 'trial')} {are} known from before")
    if event.bound is not None:
        parts.append(f"no call takes less than {duration(event.bound)} here")
    return "; ".join(parts)


def _start(event: Start) -> str:
    match event.outcome:
        case Measured(seconds):
            return f"start {event.number}: {duration(seconds)}"
        case Failed(kind, reason):
            return f"start {event.number} failed: {kind.value}: {reason}"
        case _:
            assert_never(event.outcome)


def _generation(event: Generation) -> str:
    parts = [f"generation {event.number}: {counted(event.trials, 'trial')}"]
    if event.best is not None and event.median is not None and event.worst is not None:
        times = ", ".join(map(duration, (event.best, event.median, event.worst)))
        parts.append(f"best, median, worst {times}")
    if event.failures:
        parts.append(_failures(event.failures))
    if event.quickest is not None and event.default is not None:
        gain = f"so far {duration(event.quickest)}, {event.default / event.quickest:.2f}x the default"
        if event.before is not None:
            gain += f", {event.before / event.quickest:.2f}x the best before"
        parts.append(gain)
    parts.append(_standing(event.standing))
    return "; ".join(parts)


def _trying(event: Trying) -> str:
    parts = [_standing(event.standing), counted(event.trials, "trial")]
    if event.quickest is not None:
        parts.append(f"best so far {duration(event.quickest)}")
    return "; ".join(parts)


def _standing(standing: Standing) -> str:
    """``12 % of the budget, 1h30m left``"""
    left = "" if standing.left is None else f", {rough_text(standing.left)} left"
    return f"{100 * standing.share:.0f} % of the budget{left}"


def _failures(failures: Mapping[FailureKind, int]) -> str:
    return ", ".join(counted_failures(kind.value, count) for kind, count in failures.items())


def _decided(event: Decided) -> list[str]:
    lines = []
    for name, contender in sorted(event.contenders.items(), key=lambda item: item[1].seconds):
        low, high = contender.interval
        who = name if not name.isdigit() else f"trial {name}"
        mark = " <- wins" if name == event.winner else ""
        lines.append(f"    {who:>12} {duration(contender.seconds):>9}, {duration(low)} to {duration(high)}{mark}")
    return ["measured in turns:", *lines]
