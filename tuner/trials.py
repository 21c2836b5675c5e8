"""``Trials``: candidates are compiled beside each other and measured one by one; each source once."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tc.packing import unpack
from tc.tuner.budget import Clock
from tc.tuner.challenge import Leader, challenge
from tc.tuner.crew import Crew, Packed
from tc.tuner.messages import HOPELESS, Timed
from tc.tuner.outcome import Failed, FailureKind, Measured, Outcome

# The machine is quiet while the calibrating kernel takes at most this many times its quickest.
_QUIET: Final = 1.15
_REPEATS: Final = 3
_MOST_REPEATS: Final = 9
_AGREE: Final = 1.1
# Slots of the crew.
_TRIAL, _LEADER = "trial", "leader"
# Seconds for a compilation: of the default, and of any other, which have so many times what the default took.
LONGEST_BUILD: Final = 600.0
_SHORTEST_BUILD: Final = 2.0
_TIMES_DEFAULT: Final = 6.0


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a candidate.  ``source``: the hash of its source; ``numerics``: that of the bits of its results.

    Both are empty where it did not come to them.
    """

    outcome: Outcome
    source: str = ""
    numerics: str = ""


class Trials:
    """Tries candidates with a crew.

    ``seconds``: of one measurement.  ``stop``: asked between candidates whether to end now.  ``repeats``: measurements
    while the machine is not quiet.  ``led``: who is slow is not timed for long, and who seems the quickest is timed in
    turns with the one that was; otherwise slow ones matter as much as others.
    """

    def __init__(
        self,
        crew: Crew,
        seconds: float,
        clock: Clock,
        stop: Callable[[], bool] = lambda: False,
        *,
        repeats: int = _REPEATS,
        led: bool = True,
    ) -> None:
        self._crew = crew
        self._seconds = seconds
        self._clock = clock
        self._stop = stop
        self._repeats = repeats
        self._led = led
        self._longest_build = LONGEST_BUILD
        self._quickest_calibration = math.inf
        self._by_source: dict[str, Tried] = {}
        self._packed: dict[str, Packed] = {}
        # Whose executable is in the slot of the leader.
        self._seated: str | None = None
        # The best so far, which others are compared with.
        self.leader: Leader | None = None
        # The hash of the bits that results must have; None accepts any.
        self.only: str | None = None

    def try_all(self, options: Sequence[str]) -> list[Tried]:
        """What comes of options, as canonical JSON; of the first ones only where somebody stops it."""
        tried: list[Tried] = []
        for text, built in zip(options, self._build(options), strict=True):
            if self._stop():
                break
            found = self._judge(text, built)
            if self._stop() and isinstance(found.outcome, Failed) and found.outcome.kind is FailureKind.LOST:
                break  # it was in flight, and nobody knows
            tried.append(found)
            self.follow(text, tried[-1].outcome)
        return tried

    def follow(self, options: str, outcome: Outcome) -> None:
        """Options that were tried, here or before, lead from now on if they are the quickest."""
        if self._led and isinstance(outcome, Measured) and outcome.seconds < self.quickest:
            self.leader = Leader(options, outcome)

    @property
    def quickest(self) -> float:
        """Seconds of the best candidate so far; infinite where there is none."""
        return math.inf if self.leader is None else self.leader.measured.seconds

    def packed(self, options: str, limit: float = LONGEST_BUILD) -> Packed | None:
        """The executable of options that were measured, or that compile now within so many seconds."""
        if options not in self._packed:
            (built,) = self._crew.build([options], limit)
            if isinstance(built, Failed):
                return None
            self._packed[options] = built
        return self._packed[options]

    def remember(self, options: str, packed: Packed) -> None:
        """The executable of options, so that nobody compiles them."""
        self._packed[options] = packed

    def numerics_of(self, options: str) -> str | None:
        """The hash of the bits of the results with these options; None if they fail."""
        packed = self.packed(options)
        checked = None if packed is None else self._crew.check(packed, _TRIAL)
        return None if checked is None or isinstance(checked, Failed) else checked.numerics

    def _build(self, options: Sequence[str]) -> list[Packed | Failed]:
        """Compiles candidates; nobody waits for one that takes much longer than the first one, the default."""
        begun = self._clock()
        built = self._crew.build(options, self._longest_build)
        if self._longest_build == LONGEST_BUILD and options:
            self._longest_build = max(_SHORTEST_BUILD, _TIMES_DEFAULT * (self._clock() - begun))
        return built

    def _judge(self, options: str, built: Packed | Failed) -> Tried:
        """The outcome of a candidate; options that make a known source again are as quick as that was."""
        if isinstance(built, Failed):
            return Tried(built)
        source = hashlib.sha256(unpack(built).source.encode()).hexdigest()
        if source not in self._by_source:
            self._by_source[source] = self._measure(built, source)
        tried = self._by_source[source]
        if isinstance(tried.outcome, Measured):
            self._packed[options] = built
        return tried

    def _measure(self, packed: Packed, source: str) -> Tried:
        checked = self._crew.check(packed, _TRIAL)
        if isinstance(checked, Failed):
            return Tried(checked, source)
        if self.only is not None and checked.numerics != self.only:
            other = Failed(FailureKind.NUMERICS, "its bits are not those of the static default")
            return Tried(other, source, checked.numerics)
        return Tried(self._timed(), source, checked.numerics)

    def _timed(self) -> Outcome:
        """The time of what is in the slot of trials; of what seems to be the best, in turns with who was until now."""
        leader = self.leader
        samples = self._first() if leader is None else self._later(leader.measured.seconds)
        if isinstance(samples, Failed):
            return samples
        outcome = Measured(statistics.median(samples), samples)
        if leader is None or outcome.seconds >= leader.measured.seconds or not self._seat(leader):
            return outcome
        return challenge(self._crew, leader.measured, (_LEADER, _TRIAL), self._seconds)

    def _seat(self, leader: Leader) -> bool:
        """Whether the leader is in its slot; it is not if it fails now."""
        if self._seated != leader.options:
            packed = self.packed(leader.options)
            self._seated = None
            if packed is not None and not isinstance(self._crew.check(packed, _LEADER), Failed):
                self._seated = leader.options
        return self._seated == leader.options

    def _first(self) -> tuple[float, ...] | Failed:
        """The quickest of several measurements: the first one wakes the machine, and nothing says how quick that is.

        There are more of them while the quickest one is not repeated: then others keep the machine busy.
        """
        found: list[tuple[float, ...]] = []
        while len(found) < self._repeats or (len(found) < _MOST_REPEATS and not _is_repeated(found)):
            timed = self._crew.time(_TRIAL, self._seconds, math.inf)
            if isinstance(timed, Failed):
                return timed
            self._noise(timed)
            found.append(timed.samples)
        return min(found, key=statistics.median)

    def _later(self, quickest: float) -> tuple[float, ...] | Failed:
        """The first measurement of several that finds the machine quiet, else the one that finds it least busy."""
        noise = math.inf
        samples: tuple[float, ...] = ()
        for _ in range(self._repeats):
            timed = self._crew.time(_TRIAL, self._seconds, quickest)
            if isinstance(timed, Failed):
                return timed
            found = self._noise(timed)
            if found < noise:
                noise, samples = found, timed.samples
            hopeless = min(samples) > HOPELESS * noise * quickest
            if noise <= _QUIET or hopeless or len(timed.samples) == 1:
                break
        return samples

    def _noise(self, timed: Timed) -> float:
        """How many times as long as at best the calibrating kernel takes."""
        calibrations = (timed.before, timed.after)
        self._quickest_calibration = min(self._quickest_calibration, *calibrations)
        return max(calibrations) / self._quickest_calibration if self._quickest_calibration else 1.0


def _is_repeated(found: Sequence[tuple[float, ...]]) -> bool:
    """Whether the two quickest measurements agree."""
    first, second, *_ = sorted(map(statistics.median, found))
    return second <= _AGREE * first
