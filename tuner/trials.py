"""``Trials``: candidates are compiled beside each other and measured one by one; each source once."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tc.packing import unpack
from tc.tuner.budget import Clock
from tc.tuner.crew import Crew, Packed
from tc.tuner.messages import HOPELESS, Timed
from tc.tuner.outcome import Failed, FailureKind, Measured, Outcome

# The machine is quiet while the calibrating kernel takes at most this many times its quickest.
_QUIET: Final = 1.15
_REPEATS: Final = 3
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

    ``seconds``: of one measurement.
    """

    def __init__(self, crew: Crew, seconds: float, clock: Clock) -> None:
        self._crew = crew
        self._seconds = seconds
        self._clock = clock
        self._longest_build = LONGEST_BUILD
        self._quickest_calibration = math.inf
        self._by_source: dict[str, Tried] = {}
        self._packed: dict[str, Packed] = {}
        # The hash of the bits that results must have; None accepts any.
        self.only: str | None = None

    def try_all(self, options: Sequence[str], quickest: float) -> list[Tried]:
        """What comes of options, as canonical JSON; ``quickest``: seconds of the best candidate before them."""
        tried: list[Tried] = []
        for text, built in zip(options, self._build(options), strict=True):
            tried.append(self._judge(text, built, quickest))
            if isinstance(tried[-1].outcome, Measured):
                quickest = min(quickest, tried[-1].outcome.seconds)
        return tried

    def packed(self, options: str) -> Packed | None:
        """The executable of options that were measured, or that compile now."""
        if options not in self._packed:
            (built,) = self._crew.build([options], LONGEST_BUILD)
            if isinstance(built, Failed):
                return None
            self._packed[options] = built
        return self._packed[options]

    def numerics_of(self, options: str) -> str | None:
        """The hash of the bits of the results with these options; None if they fail."""
        packed = self.packed(options)
        checked = None if packed is None else self._crew.check(packed, "trial")
        return None if checked is None or isinstance(checked, Failed) else checked.numerics

    def _build(self, options: Sequence[str]) -> list[Packed | Failed]:
        """Compiles candidates; nobody waits for one that takes much longer than the first one, the default."""
        begun = self._clock()
        built = self._crew.build(options, self._longest_build)
        if self._longest_build == LONGEST_BUILD and options:
            self._longest_build = max(_SHORTEST_BUILD, _TIMES_DEFAULT * (self._clock() - begun))
        return built

    def _judge(self, options: str, built: Packed | Failed, quickest: float) -> Tried:
        """The outcome of a candidate; options that make a known source again are as quick as that was."""
        if isinstance(built, Failed):
            return Tried(built)
        source = hashlib.sha256(unpack(built).source.encode()).hexdigest()
        if source not in self._by_source:
            self._by_source[source] = self._measure(built, source, quickest)
        tried = self._by_source[source]
        if isinstance(tried.outcome, Measured):
            self._packed[options] = built
        return tried

    def _measure(self, packed: Packed, source: str, quickest: float) -> Tried:
        checked = self._crew.check(packed, "trial")
        if isinstance(checked, Failed):
            return Tried(checked, source)
        if self.only is not None and checked.numerics != self.only:
            other = Failed(FailureKind.NUMERICS, "its bits are not those of the static default")
            return Tried(other, source, checked.numerics)
        samples = self._first() if quickest == math.inf else self._later(quickest)
        outcome = samples if isinstance(samples, Failed) else Measured(statistics.median(samples), samples)
        return Tried(outcome, source, checked.numerics)

    def _first(self) -> tuple[float, ...] | Failed:
        """The quickest of several measurements: the first one wakes the machine, and nothing says how quick that is."""
        found: list[tuple[float, ...]] = []
        for _ in range(_REPEATS):
            timed = self._crew.time("trial", self._seconds, math.inf)
            if isinstance(timed, Failed):
                return timed
            self._noise(timed)
            found.append(timed.samples)
        return min(found, key=statistics.median)

    def _later(self, quickest: float) -> tuple[float, ...] | Failed:
        """The first measurement of several that finds the machine quiet, else the one that finds it least busy."""
        noise = math.inf
        samples: tuple[float, ...] = ()
        for _ in range(_REPEATS):
            timed = self._crew.time("trial", self._seconds, quickest)
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
