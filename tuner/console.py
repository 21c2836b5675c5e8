"""Progress for people: a line for every generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, assert_never

from tc.reference.memory import bytes_text
from tc.tuner.outcome import FailureKind
from tc.tuner.progress import Decided, Event, Generation, Judging, Listener, Started

# Bytes that are worth a word.
_MUCH: Final = 1 << 28


def console(say: Callable[[str], None]) -> Listener:
    """A listener that says what happens, line by line."""

    def listen(event: Event) -> None:
        match event:
            case Judging():
                if event.bytes >= _MUCH:
                    say(f"the oracle computes what is right, with {bytes_text(event.bytes)} of memory")
            case Started():
                say(_started(event))
            case Generation():
                say(_generation(event))
            case Decided():
                for line in _decided(event):
                    say(line)
            case _:
                assert_never(event)

    return listen


def duration(seconds: float) -> str:
    """Seconds in the unit that fits: ``1.23 ms``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _started(event: Started) -> str:
    parts = [f"{event.definition} on {event.target}: {event.encodings:.1e} encodings"]
    if event.known:
        parts.append(f"{event.known} trials are known from before")
    if event.bound is not None:
        parts.append(f"no call takes less than {duration(event.bound)} here")
    return "; ".join(parts)


def _generation(event: Generation) -> str:
    parts = [f"generation {event.number}: {event.trials} trials"]
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
    if event.left is not None:
        parts.append(f"{event.left:.0f} s left")
    return "; ".join(parts)


def _failures(failures: Mapping[FailureKind, int]) -> str:
    return ", ".join(f"{count} {kind.value}" for kind, count in failures.items())


def _decided(event: Decided) -> list[str]:
    lines = []
    for name, contender in sorted(event.contenders.items(), key=lambda item: item[1].seconds):
        low, high = contender.interval
        who = name if not name.isdigit() else f"trial {name}"
        mark = " <- wins" if name == event.winner else ""
        lines.append(f"    {who:>12} {duration(contender.seconds):>9}, {duration(low)} to {duration(high)}{mark}")
    return ["measured in turns:", *lines]
