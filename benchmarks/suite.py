"""The suite: every case with every contender, each in a process of its own, checked before and after it is timed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from benchmarks.cases import Case
from benchmarks.clock import kind_of
from benchmarks.contender import Contender
from benchmarks.goals import goal_of
from benchmarks.machine import commit, describe_machine
from benchmarks.messages import Calibrate, CheckAgain, Judge, MeasureRoofs, Prepare, Ready, Refused, Sample
from benchmarks.results import Measured, Missing, Report, Row, Settings
from benchmarks.rounds import Calibration, take_turns
from benchmarks.worker import Worker
from tc.base.records import Json
from tc.tuner.roofline.roofline import Roofs, Work, highest

# A noisy case goes on for so many times the rounds that it would take.
_PATIENCE: Final = 3
_CALIBRATION_SECONDS: Final = 0.05

Given = TypeVar("Given")


class MeasurementError(Exception):
    """Nothing can be measured, and why."""


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
        _given(worker.ask(Calibrate()), "the calibration")
        calibration = Calibration(worker, _CALIBRATION_SECONDS)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        machine = describe_machine(gpu=kind_of(settings.target) == "cuda")
        report = Report(started, commit(), machine, settings, roofs, ())
        for case in cases:
            row = run_case(case, settings, tuned.get(case.name), calibration)
            # Again and again, for others may take the memory of a shared machine for minutes.
            roofs = highest(roofs, _roofs(worker))
            report = replace(report, roofs=roofs, rows=(*report.rows, row))
            show(row, report)
    return report


def run_case(case: Case, settings: Settings, tuned: Json | None, calibration: Calibration) -> Row:
    """Measures one case; ``tuned``: the options of the contender that uses some, which else does not take part."""
    contenders = [Contender.OURS, Contender.PREALLOCATED, *settings.peers]
    if tuned is not None:
        contenders.insert(1, Contender.TUNED)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tc-benchmark-")))
        work = judged(case, settings, folder)
        workers: dict[Contender, Worker] = {}
        ready: dict[Contender, Ready] = {}
        refused: dict[Contender, Refused] = {}
        for contender in contenders:  # one after the other: compiling and checking take all cores and much memory
            worker = stack.enter_context(Worker(settings.threads, settings.target))
            options = tuned if contender is Contender.TUNED else None
            answer = worker.ask(Prepare(case, contender, folder, settings.seed, settings.arrays, options))
            if isinstance(answer, Refused):
                refused[contender] = answer
                worker.stop()
            else:
                workers[contender], ready[contender] = worker, answer
        taken = take_turns(
            workers,
            calibration,
            rounds=settings.rounds,
            most=_PATIENCE * settings.rounds,
            seconds=settings.seconds,
            rest=lambda: time.sleep(settings.pause),
        )
        refused |= taken.refused
        for contender, worker in workers.items():
            if contender not in refused and isinstance(again := worker.ask(CheckAgain()), Refused):
                refused[contender] = again
    goal = goal_of(case, kind_of(settings.target))
    measured = (_measured(contender, taken.samples[contender], ready[contender]) for contender in taken.samples)
    return Row(
        case=case.name,
        suite=case.suite,
        sizes=dict(case.sizes),
        minimum=goal.minimum,
        work=work,
        calibrations=taken.calibrations,
        measured=tuple(found for found in measured if found.contender not in refused),
        missing=tuple(Missing(contender, answer.reason, answer.wrong) for contender, answer in refused.items()),
        goal=goal.seconds,
    )


def judged(case: Case, settings: Settings, folder: Path) -> Work:
    """The work of a case, whose right results are then in ``folder``.  MeasurementError if the oracle fails."""
    with Worker(settings.threads, settings.target) as worker:
        work = _given(worker.ask(Judge(case, folder, settings.seed)), f"the oracle's results of {case.name}")
    assert isinstance(work, Work)
    return work


def _roofs(worker: Worker) -> Roofs:
    roofs = _given(worker.ask(MeasureRoofs()), "the roofs of the machine")
    assert isinstance(roofs, Roofs)
    return roofs


def _given(answer: Given | Refused, what: str) -> Given:
    if isinstance(answer, Refused):
        raise MeasurementError(f"{what}: {answer.reason}")
    return answer


def _measured(contender: Contender, samples: tuple[Sample, ...], ready: Ready) -> Measured:
    return Measured(contender, samples, ready.preparation, ready.deviation, ready.options, ready.stages)
