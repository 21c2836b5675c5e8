"""A plain search for options: from the default ones on, step by step to quicker ones, each checked by the oracle."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.cases import Case
from benchmarks.contender import Contender
from benchmarks.machine import describe_machine
from benchmarks.messages import Calibrate, Measure, Prepare, Refused
from benchmarks.results import Settings
from benchmarks.rounds import Calibration, take_turns
from benchmarks.space import neighbour
from benchmarks.suite import MeasurementError, judged
from benchmarks.tuned import Winner
from benchmarks.worker import Worker
from tc.errors import OptionsError
from tc.options import CpuOptions, from_json, to_json
from tc.records import Json

# Seconds of a call with the options, or None where they cannot be honoured, or come to something wrong.
Evaluate = Callable[[CpuOptions], float | None]

# A step must win this much, for noise alone wins less.
_STEP: Final = 0.985
_WINNER: Final = 0.97

# So many neighbours in a row that are known mean that there are hardly others.
_REPEATED: Final = 1000

# Translating leaves memory behind that only the end of the process gives back.
_TRIALS_PER_PROCESS: Final = 40
_TRIAL_SECONDS: Final = 0.08
# A candidate that is not translated, compiled and checked after so many seconds is given up.
_LIMIT: Final = 30.0


@dataclass(frozen=True, slots=True)
class Found:
    """The quickest options of a search, how many were tried, and how many of them came to nothing."""

    options: CpuOptions
    seconds: float
    tried: int
    refused: int


def climb(starts: Iterable[CpuOptions], evaluate: Evaluate, more: Callable[[], bool], random: Random) -> Found | None:
    """From the quickest of some options to neighbours that are quicker, while there is ``more`` time.

    Never tries the same options twice; ends early where every neighbour that comes up is known.  None if none of the
    first options can be evaluated.
    """
    evaluated = {options: evaluate(options) for options in starts}
    known = set(evaluated)
    quick = {options: taken for options, taken in evaluated.items() if taken is not None}
    if not quick:
        return None
    best, seconds = min(quick.items(), key=lambda item: item[1])
    refused, repeated = len(known) - len(quick), 0
    while more() and repeated < _REPEATED:
        candidate = neighbour(best, random)
        if candidate in known:
            repeated += 1
            continue
        known.add(candidate)
        taken, repeated = evaluate(candidate), 0
        if taken is None:
            refused += 1
        elif taken < _STEP * seconds:
            best, seconds = candidate, taken
    return Found(best, seconds, len(known), refused)


class Trials:
    """Evaluates options of a case in processes that are replaced now and then."""

    def __init__(self, case: Case, folder: Path, settings: Settings) -> None:
        self._case = case
        self._folder = folder
        self._settings = settings
        self._worker: Worker | None = None
        self._left = 0
        self._known: dict[str | None, float | None] = {}

    def evaluate(self, options: CpuOptions) -> float | None:
        """Seconds of a call, the quicker of two measurements; None if the options come to nothing right.

        Options that make a kernel again that was measured are as quick as it was then.
        """
        if self._worker is None or not self._left:
            self.stop()
            self._worker, self._left = Worker(self._settings.threads, self._settings.target), _TRIALS_PER_PROCESS
        self._left -= 1
        ready = self._worker.ask(self._question(options), _LIMIT)
        seconds = None
        if not isinstance(ready, Refused):
            if ready.source not in self._known:
                self._known[ready.source] = _timed(self._worker)
            seconds = self._known[ready.source]
        if not self._worker.alive:
            self._left = 0
        return seconds

    def _question(self, options: CpuOptions) -> Prepare:
        return _prepare(self._case, Contender.TUNED, self._folder, self._settings, to_json(options))

    def stop(self) -> None:
        """Ends the process."""
        if self._worker is not None:
            self._worker.stop()
        self._worker = None


def _timed(worker: Worker) -> float | None:
    least = float("inf")
    for _ in range(2):
        sample = worker.ask(Measure(_TRIAL_SECONDS), _LIMIT)
        if isinstance(sample, Refused):
            return None
        least = min(least, sample.seconds)
    return least


def _prepare(case: Case, contender: Contender, folder: Path, settings: Settings, options: Json | None) -> Prepare:
    return Prepare(case, contender, folder, settings.seed, settings.arrays, options)


def search_case(
    case: Case, settings: Settings, budget: float, random: Random, known: Winner | None = None
) -> tuple[Found, Winner | None]:
    """Searches for about ``budget`` seconds from the default options, and those of a winner that is known.

    What was found is measured beside the default options; the winner is None where those are as quick.
    MeasurementError where no options run.
    """
    with tempfile.TemporaryDirectory(prefix="tc-search-") as name:
        folder = Path(name)
        judged(case, settings, folder)
        trials = Trials(case, folder, settings)
        end = time.monotonic() + budget
        try:
            found = climb(_starts(known), trials.evaluate, lambda: time.monotonic() < end, random)
        finally:
            trials.stop()
        if found is None:
            raise MeasurementError(f"{case.name} does not run")
        if found.options == CpuOptions():
            return found, None
        return found, _contest(case, settings, folder, found.options)


def _starts(known: Winner | None) -> list[CpuOptions]:
    if known is not None:
        with suppress(OptionsError):  # options that are no more
            return [CpuOptions(), from_json(known.options, CpuOptions)]
    return [CpuOptions()]


def _contest(case: Case, settings: Settings, folder: Path, options: CpuOptions) -> Winner | None:
    """The options as a winner, if they are quicker than the default ones in rounds of turns."""
    chosen = to_json(options)
    with (
        Worker(settings.threads, settings.target) as calibrator,
        Worker(settings.threads, settings.target) as plain,
        Worker(settings.threads, settings.target) as tuned,
    ):
        for worker, question in (
            (calibrator, Calibrate()),
            (plain, _prepare(case, Contender.TUNED, folder, settings, to_json(CpuOptions()))),
            (tuned, _prepare(case, Contender.TUNED, folder, settings, chosen)),
        ):
            if isinstance(answer := worker.ask(question), Refused):
                raise MeasurementError(f"{case.name}, once more: {answer.reason}")
        taken = take_turns(
            {"default": plain, "tuned": tuned},
            Calibration(calibrator, 0.05),
            rounds=settings.rounds,
            most=2 * settings.rounds,
            seconds=settings.seconds,
            rest=lambda: time.sleep(settings.pause),
        )
    if taken.refused:
        return None
    seconds = {name: statistics.median(s.seconds for s in samples) for name, samples in taken.samples.items()}
    if seconds["tuned"] > _WINNER * seconds["default"]:
        return None
    return Winner(chosen, seconds["tuned"], seconds["default"], describe_machine().model)
