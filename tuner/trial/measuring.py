"""``Measuring``: candidates are checked and timed on one device, one after the other."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.tuner.trial.compare_with_best import Leader, compare_with_best
from tc.tuner.trial.messages import GIVE_UP, HOPELESS, Timed
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured, Outcome
from tc.tuner.trial.workers import Measurer, Packed

# The machine is quiet while the calibrating kernel takes at most this many times its quickest.
_QUIET: Final = 1.15
REPEATS: Final = 3
_MOST_REPEATS: Final = 9
_AGREE: Final = 1.1
# What is predicted to take so many times what is predicted of the best so far is not run: predictions of one device are
# off by less than half in either direction.
_DRAFT: Final = 3.0
# Slots of the process that measures.
TRIAL: Final = "trial"
_LEADER: Final = "leader"


@frozen
class Sampling:
    """``seconds``: of one measurement; ``repeats``: how many while the machine is not quiet.

    ``led``: slow candidates are not timed for long, and one that seems the quickest is measured alternately with the
    best so far; otherwise all are timed alike.
    """

    seconds: float
    repeats: int = REPEATS
    led: bool = True


@frozen
class Tried:
    """The outcome of a candidate.  ``source``: the hash of its source; ``numerics``: that of the bits of its results.

    Both are empty where the candidate failed before.  ``predicted``: seconds, where a time is predicted.
    """

    outcome: Outcome
    source: str = ""
    numerics: str = ""
    predicted: float | None = None


class Measuring:
    """Measures candidates: repeats measurements, and compares with the best so far.

    ``packed``: the executable of options that were measured before, None where they fail now.  ``least``: a lower bound
    of the seconds of a call of an executable, known before it runs.  ``predicted``: the seconds that a call is
    predicted to take; None where nothing is.
    """

    def __init__(
        self,
        measurer: Measurer,
        sampling: Sampling,
        packed: Callable[[str], Packed | None],
        least: Callable[[Packed], float],
        predicted: Callable[[Packed], float | None] = lambda _: None,
    ) -> None:
        self._predicted: Final = predicted
        self._measurer: Final = measurer
        self._sampling: Final = sampling
        self._packed: Final = packed
        self._least: Final = least
        self._quickest_calibration = math.inf
        # Whose executable is in the slot of the leader.
        self._loaded: str | None = None

    def numerics_of(self, packed: Packed) -> str | None:
        """The hash of the bits of the results; None for what fails."""
        checked = self._measurer.check(packed, TRIAL)
        return None if isinstance(checked, Failed) else checked.numerics

    def measure(self, packed: Packed, source: str, leader: Leader | None, only: str | None) -> Tried:
        """What comes of a candidate.  ``leader``: the best so far, which it is compared with.  ``only``: the hash of
        the bits that its results must have, None for any.
        """
        if leader is not None and (least := self._least(packed)) >= GIVE_UP * leader.measured.seconds:
            reason = f"its threads need {least:.2g} s at least, and the best call takes {leader.measured.seconds:.2g} s"
            return Tried(Failed(FailureKind.SLOW, reason), source)
        if leader is not None and (slow := self._predicted_slow(packed, leader)) is not None:
            return Tried(Failed(FailureKind.SLOW, slow), source)
        checked = self._measurer.check(packed, TRIAL)
        if isinstance(checked, Failed):
            return Tried(checked, source)
        if only is not None and checked.numerics != only:
            other = Failed(FailureKind.NUMERICS, "its bits are not those of the static default")
            return Tried(other, source, checked.numerics)
        return Tried(self._timed(leader), source, checked.numerics, self._predicted(packed))

    def _predicted_slow(self, packed: Packed, leader: Leader) -> str | None:
        """Why a candidate is not worth a measurement, as far as predictions tell."""
        predicted = self._predicted(packed)
        best = None if predicted is None else self._packed(leader.options)
        known = None if best is None else self._predicted(best)
        if predicted is None or known is None or predicted < _DRAFT * known:
            return None
        return f"it is predicted to take {predicted:.2g} s, {predicted / known:.2g} times as long as the best so far"

    def _timed(self, leader: Leader | None) -> Outcome:
        """The time of the candidate; if it seems to be the best, measured alternately with the best so far."""
        samples = self._first() if leader is None else self._later(leader.measured.seconds)
        if isinstance(samples, Failed):
            return samples
        outcome = Measured(statistics.median(samples), samples)
        if leader is None or outcome.seconds >= leader.measured.seconds or not self._load_leader(leader):
            return outcome
        return compare_with_best(self._measurer, leader.measured, (_LEADER, TRIAL), self._sampling.seconds)

    def _load_leader(self, leader: Leader) -> bool:
        """Puts the leader into its slot; False if it fails now."""
        if self._loaded != leader.options:
            packed = self._packed(leader.options)
            self._loaded = None
            if packed is not None and not isinstance(self._measurer.check(packed, _LEADER), Failed):
                self._loaded = leader.options
        return self._loaded == leader.options

    def _first(self) -> tuple[float, ...] | Failed:
        """The quickest of several measurements: the first one warms the machine up, and its noise is unknown.

        There are more of them while the quickest one is not repeated: then others keep the machine busy.
        """
        found: list[tuple[float, ...]] = []
        while len(found) < self._sampling.repeats or (len(found) < _MOST_REPEATS and not _is_repeated(found)):
            timed = self._measurer.time(TRIAL, self._sampling.seconds, math.inf)
            if isinstance(timed, Failed):
                return timed
            self._noise(timed)
            found.append(timed.samples)
        return min(found, key=statistics.median)

    def _later(self, quickest: float) -> tuple[float, ...] | Failed:
        """The first measurement of several that finds the machine quiet, else the one that finds it least busy."""
        noise = math.inf
        samples: tuple[float, ...] = ()
        for _ in range(self._sampling.repeats):
            timed = self._measurer.time(TRIAL, self._sampling.seconds, quickest)
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
