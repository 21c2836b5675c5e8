"""The suite: every case with every contender, each in a process of its own, checked before and after it is timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from benchmarks.measuring.clock import kind_of
from benchmarks.measuring.contender import Contender
from benchmarks.measuring.lineup import Lineup, given, lineups
from benchmarks.measuring.machine import commit, describe_machine
from benchmarks.measuring.messages import Calibrate, CheckAgain, MeasureRoofs, Ready, Refused, Sample
from benchmarks.measuring.rounds import Calibration, take_turns
from benchmarks.measuring.worker import Worker
from benchmarks.problems.case import Case
from benchmarks.problems.goals import goal_of
from benchmarks.reporting.results import Measured, Missing, Report, Row, Settings
from tc.base.json_records import Json
from tc.tuner.roofline.roofline import Roofs, highest

# A noisy case goes on for so many times the rounds that it would take.
_PATIENCE: Final = 3
_CALIBRATION_SECONDS: Final = 0.05


def run_suite(
    cases: Iterable[Case],
    settings: Settings,
    tuned: Mapping[str, Json],
    show: Callable[[Row, Report], None],
) -> Report:
    """Measures the cases one after the other; ``show`` is called after each, with the report so far.

    ``tuned``: options by case, for the contender that uses them.  MeasurementError if the machine cannot be measured.
    """
    with Worker(settings.threads, settings.target) as worker:
        roofs = _roofs(worker)
        given(worker.ask(Calibrate()), "the calibration")
        calibration = Calibration(worker, _CALIBRATION_SECONDS)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        machine = describe_machine(gpu=kind_of(settings.target) == "cuda")
        report = Report(started, commit(), machine, settings, roofs, ())
        for together in batched(cases, settings.ahead):
            with lineups(together, settings, tuned) as ready:
                for lineup in ready:
                    row = measure_case(lineup, settings, calibration)
                    # Again and again, for others may take the memory of a shared machine for minutes.
                    roofs = highest(roofs, _roofs(worker))
                    report = replace(report, roofs=roofs, rows=(*report.rows, row))
                    show(row, report)
    return report


def batched(cases: Iterable[Case], size: int) -> Iterator[tuple[Case, ...]]:
    """The cases, so many at a time."""
    rest = iter(cases)
    while together := tuple(islice(rest, size)):
        yield together


def measure_case(lineup: Lineup, settings: Settings, calibration: Calibration) -> Row:
    """Measures the contenders of a case in turns, and checks their results once more."""
    taken = take_turns(
        lineup.workers,
        calibration,
        rounds=settings.rounds,
        most=_PATIENCE * settings.rounds,
        seconds=settings.seconds,
        rest=lambda: time.sleep(settings.pause),
    )
    refused = {**lineup.refused, **taken.refused}
    for contender, worker in lineup.workers.items():
        if contender not in refused and isinstance(again := worker.ask(CheckAgain()), Refused):
            refused[contender] = again
    case = lineup.case
    goal = goal_of(case, kind_of(settings.target))
    measured = (_measured(contender, taken.samples[contender], lineup.ready[contender]) for contender in taken.samples)
    return Row(
        case=case.name,
        suite=case.suite,
        sizes=dict(case.sizes),
        minimum=goal.minimum,
        work=lineup.work,
        calibrations=taken.calibrations,
        measured=tuple(found for found in measured if found.contender not in refused),
        missing=tuple(Missing(contender, answer.reason, answer.wrong) for contender, answer in refused.items()),
        goal=goal.seconds,
    )


def _roofs(worker: Worker) -> Roofs:
    roofs = given(worker.ask(MeasureRoofs()), "the roofs of the machine")
    assert isinstance(roofs, Roofs)
    return roofs


def _measured(contender: Contender, samples: tuple[Sample, ...], ready: Ready) -> Measured:
    return Measured(contender, samples, ready.preparation, ready.deviation, ready.options, ready.stages)
