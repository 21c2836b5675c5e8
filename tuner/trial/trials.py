"""``Trials``: compiles candidates concurrently and measures them, one at a time on each device; each source once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tc.artifact.packing import unpack
from tc.tuner.trial.budget import Clock
from tc.tuner.trial.compare_with_best import Leader
from tc.tuner.trial.measuring import Measuring, Sampling, Tried
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured, Outcome
from tc.tuner.trial.workers import Measurer, Packed, Workers

# Seconds for a compilation: of the default, and of any other, which have so many times what the default took.
LONGEST_BUILD: Final = 600.0
_SHORTEST_BUILD: Final = 2.0
_TIMES_DEFAULT: Final = 6.0


class Trials:
    """Tries candidates with workers.

    ``stop``: asked between candidates whether to end now.  ``measurers``: of GPUs of one kind, which
    measure concurrently; none: the workers measure one at a time.  ``least``: a lower bound of the seconds of a call of
    an executable; candidates whose bound is hopeless do not run.  ``predicted``: the seconds that a call is predicted
    to take; those that are predicted to be slow do not run either.
    """

    def __init__(
        self,
        workers: Workers,
        sampling: Sampling,
        clock: Clock,
        stop: Callable[[], bool] = lambda: False,
        *,
        measurers: Sequence[Measurer] = (),
        least: Callable[[Packed], float] = lambda _: 0.0,
        predicted: Callable[[Packed], float | None] = lambda _: None,
    ) -> None:
        self._workers = workers
        self._clock = clock
        self._stop = stop
        self._measurers = tuple(
            Measuring(measurer, sampling, self.packed, least, predicted) for measurer in measurers or (workers,)
        )
        self._led = sampling.led
        self._longest_build = LONGEST_BUILD
        self._by_source: dict[str, Tried] = {}
        self._packed: dict[str, Packed] = {}
        # The best so far, which others are compared with.
        self.leader: Leader | None = None
        # The hash of the bits that results must have; None accepts any.
        self.only: str | None = None

    def try_all(self, options: Sequence[str]) -> list[Tried]:
        """The outcomes of options (canonical JSON), in order; only of the first ones where the search is stopped."""
        tried: list[Tried] = []
        built = self._build(options)
        end = 0
        while end < len(options) and not self._stop():
            part = slice(end, self._together(built, end))
            end = part.stop
            for text, found in zip(options[part], self._judge(options[part], built[part]), strict=True):
                if self._stop() and isinstance(found.outcome, Failed) and found.outcome.kind is FailureKind.LOST:
                    return tried  # it was in flight, and its outcome is unknown
                tried.append(found)
                self.follow(text, found.outcome)
        return tried

    def follow(self, options: str, outcome: Outcome) -> None:
        """Options that were tried, here or before, become the leader if they are the quickest."""
        if self._led and isinstance(outcome, Measured) and outcome.seconds < self.quickest:
            self.leader = Leader(options, outcome)

    @property
    def quickest(self) -> float:
        """Seconds of the best candidate so far; infinite where there is none."""
        return math.inf if self.leader is None else self.leader.measured.seconds

    def packed(self, options: str, limit: float = LONGEST_BUILD) -> Packed | None:
        """The executable of options that were measured, or that compile now within so many seconds."""
        if options not in self._packed:
            (built,) = self._workers.build([options], limit)
            if isinstance(built, Failed):
                return None
            self._packed[options] = built
        return self._packed[options]

    def remember(self, options: str, packed: Packed) -> None:
        """Keeps the executable of options, so that they are not compiled again."""
        self._packed[options] = packed

    def numerics_of(self, options: str) -> str | None:
        """The hash of the bits of the results with these options; None if they fail."""
        packed = self.packed(options)
        return None if packed is None else self._measurers[0].numerics_of(packed)

    def _build(self, options: Sequence[str]) -> list[Packed | Failed]:
        """Compiles candidates; one that takes much longer than the first one, the default, is given up."""
        begun = self._clock()
        built = self._workers.build(options, self._longest_build)
        if self._longest_build == LONGEST_BUILD and options:
            self._longest_build = max(_SHORTEST_BUILD, _TIMES_DEFAULT * (self._clock() - begun))
        return built

    def _together(self, built: Sequence[Packed | Failed], start: int) -> int:
        """Where the candidates from ``start`` on end that bring at most one new source for each measurer."""
        new: set[str] = set()
        for place in range(start, len(built)):
            one = built[place]
            if not isinstance(one, Failed) and (source := _source_of(one)) not in self._by_source:
                new.add(source)
            if len(new) > len(self._measurers):
                return place
        return len(built)

    def _judge(self, options: Sequence[str], built: Sequence[Packed | Failed]) -> list[Tried]:
        """The outcomes of at most one new source per measurer; options that make a known source share its outcome."""
        sources = ["" if isinstance(one, Failed) else _source_of(one) for one in built]
        new = {
            source: one
            for source, one in zip(sources, built, strict=True)
            if not isinstance(one, Failed) and source not in self._by_source
        }
        self._by_source |= dict(zip(new, self._measured(new), strict=True))
        for text, source, one in zip(options, sources, built, strict=True):
            if not isinstance(one, Failed) and isinstance(self._by_source[source].outcome, Measured):
                self._packed[text] = one
        return [
            Tried(one) if isinstance(one, Failed) else self._by_source[source]
            for source, one in zip(sources, built, strict=True)
        ]

    def _measured(self, new: Mapping[str, Packed]) -> list[Tried]:
        """The outcomes of executables by source, each on a measurer of its own."""
        leader, only = self.leader, self.only
        work = [
            (measurer, packed, source) for measurer, (source, packed) in zip(self._measurers, new.items(), strict=False)
        ]
        if len(work) <= 1:
            return [measurer.measure(packed, source, leader, only) for measurer, packed, source in work]
        with ThreadPoolExecutor(len(self._measurers)) as threads:
            return list(threads.map(lambda one: one[0].measure(one[1], one[2], leader, only), work))


def _source_of(packed: Packed) -> str:
    return hashlib.sha256(unpack(packed).source.encode()).hexdigest()
