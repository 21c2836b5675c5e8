"""``Score``: what a row of measurements says."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from benchmarks.measuring.contender import Contender
from benchmarks.measuring.rounds import quiet_rounds
from benchmarks.reporting.results import Measured, Report, Row


class Verdict(Enum):
    """What became of a case."""

    REACHED = "reached"
    MISSED = "missed"
    AT_BOUND = "at the bound"  # missed on a quiet machine, within a tenth of what it can do at most
    INCOMPLETE = "incomplete"  # ours or every peer is missing
    WRONG = "WRONG"


# The system provides no larger ones unless a program asks for them by name.
LARGEST_PAGE = 2 << 20

# A quiet row that misses its minimum is excused when it reaches this part of the machine's bound.
EXCUSED = 0.9


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds of a call: the median of the rounds, the quickest and the slowest round."""

    median: float
    least: float
    most: float
    faults: float


@dataclass(frozen=True, slots=True)
class Score:
    """``times``: of who was measured.  ``peer``: the quickest one.  ``ours``: the quickest of ours that users call.

    ``ratio``: the best peer's time divided by ours.  ``fraction``: of the machine's bound that ours reaches.
    ``fresh``: the part of ours that goes away when the outputs exist already, where their
    pages come from the system.  ``noisy``: there were fewer quiet
    rounds than asked for, and all were taken.
    """

    times: dict[Contender, Time]
    ours: Contender | None
    peer: Contender | None
    ratio: float | None
    bound: float
    fraction: float | None
    fresh: float | None
    noisy: bool
    verdict: Verdict


def score(row: Row, report: Report) -> Score:
    """The score of a row of the report."""
    quiet = quiet_rounds(row.calibrations, report.quickest_calibration)
    noisy = len(quiet) < report.settings.rounds
    rounds = range(len(row.calibrations) - 1) if noisy else quiet
    times = {measured.contender: _time(measured, rounds) for measured in row.measured}
    ours = _quickest(times, (Contender.OURS, Contender.TUNED))
    peer = _quickest(times, (contender for contender in times if not contender.is_ours))
    provided = Contender.OURS in times and _provided(times[Contender.OURS].faults, row.work.written)
    bound = report.roofs.bound(row.work, fresh=provided)
    ratio = None if ours is None or peer is None else times[peer].median / times[ours].median
    fraction = None if ours is None else bound / times[ours].median
    fresh = None
    if provided and Contender.PREALLOCATED in times:
        fresh = 1 - times[Contender.PREALLOCATED].median / times[Contender.OURS].median
    wrong = any(missing.wrong for missing in row.missing)
    excused = not noisy and fraction is not None and fraction >= EXCUSED
    verdict = _verdict(row, ratio, wrong=wrong, excused=excused)
    return Score(times, ours, peer, ratio, bound, fraction, fresh, noisy, verdict)


def _provided(faults: float, written: int) -> bool:
    """Whether most of the results lay in new pages: some are new by chance, such as the arrays around a call."""
    return faults >= max(1.0, written / (2 * LARGEST_PAGE))


def _time(measured: Measured, rounds: Iterable[int]) -> Time:
    samples = [measured.samples[number] for number in rounds]
    seconds = [sample.seconds for sample in samples]
    faults = statistics.median(sample.faults for sample in samples)
    return Time(statistics.median(seconds), min(seconds), max(seconds), faults)


def _quickest(times: dict[Contender, Time], among: Iterable[Contender]) -> Contender | None:
    return min((c for c in among if c in times), key=lambda contender: times[contender].median, default=None)


def _verdict(row: Row, ratio: float | None, *, wrong: bool, excused: bool) -> Verdict:
    if wrong:
        return Verdict.WRONG
    if ratio is None:
        return Verdict.INCOMPLETE
    if ratio >= row.minimum:
        return Verdict.REACHED
    return Verdict.AT_BOUND if excused else Verdict.MISSED


def geometric_mean(ratios: Iterable[float]) -> float | None:
    """None without ratios."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None


def mean_ratio(report: Report) -> float | None:
    """The geometric mean of best peer / ours over the rows that have both."""
    scores = [score(row, report) for row in report.rows]
    return geometric_mean(found.ratio for found in scores if found.ratio is not None)
