"""Rounds: contenders take turns, so that what changes on the machine changes for all of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from benchmarks.measuring.messages import Measure, Refused, Sample

Name = TypeVar("Name", bound=Hashable)

# The machine is quiet while the calibrating kernel takes at most this many times its quickest.  On an idle virtual
# machine, whose host is shared, most rounds take 1.1 to 1.2 times that.
QUIET = 1.15


class Entrant(Protocol):
    """Whoever can be measured: a ``Worker``, ready."""

    def ask(self, question: Measure) -> Sample | Refused: ...


@dataclass(frozen=True, slots=True)
class Rounds(Generic[Name]):
    """``samples``: one per round and entrant.  ``calibrations``: one more.  ``refused``: who dropped out, and why."""

    samples: dict[Name, tuple[Sample, ...]]
    calibrations: tuple[float, ...]
    refused: dict[Name, Refused]


def quiet_rounds(calibrations: Sequence[float], quickest: float) -> tuple[int, ...]:
    """The rounds with a calibration before and one after them that say that the machine was quiet."""
    calm = [seconds <= QUIET * quickest for seconds in calibrations]
    return tuple(number for number in range(len(calm) - 1) if calm[number] and calm[number + 1])


class Calibration:
    """The kernel that tells whether the machine is quiet, and how quick it was at best."""

    def __init__(self, entrant: Entrant, seconds: float) -> None:
        self._entrant = entrant
        self._seconds = seconds
        self.quickest = float("inf")

    def measure(self) -> float:
        """Seconds of a call now.  RuntimeError if it cannot be measured, without which nothing can."""
        sample = self._entrant.ask(Measure(self._seconds))
        if isinstance(sample, Refused):
            raise RuntimeError(f"the calibrating kernel does not run: {sample.reason}")
        self.quickest = min(self.quickest, sample.seconds)
        return sample.seconds


def take_turns(
    entrants: Mapping[Name, Entrant],
    calibration: Calibration,
    *,
    rounds: int,
    most: int,
    seconds: float,
    rest: Callable[[], None],
) -> Rounds[Name]:
    """Rounds until ``rounds`` of them were quiet, at most ``most``.

    In a round every entrant is measured for about so many ``seconds``, then the calibration; ``rest`` is called after
    each.  One that refuses drops out.
    """
    samples: dict[Name, list[Sample]] = {name: [] for name in entrants}
    refused: dict[Name, Refused] = {}
    calibrations = [calibration.measure()]
    rest()
    while len(calibrations) <= most and len(quiet_rounds(calibrations, calibration.quickest)) < rounds:
        for name in [name for name in entrants if name not in refused]:
            sample = entrants[name].ask(Measure(seconds))
            if isinstance(sample, Refused):
                refused[name] = sample
            else:
                samples[name].append(sample)
            rest()
        calibrations.append(calibration.measure())
        rest()
    kept = {name: tuple(taken) for name, taken in samples.items() if name not in refused}
    return Rounds(kept, tuple(calibrations), refused)
