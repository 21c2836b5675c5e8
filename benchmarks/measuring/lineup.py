"""``Lineup``: the contenders of a case, each in a process of its own, its first result checked."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from benchmarks.measuring.contender import TIME_THEMSELVES, Contender
from benchmarks.measuring.messages import Judge, Prepare, Ready, Refused
from benchmarks.measuring.worker import Worker
from benchmarks.problems.case import Case
from benchmarks.reporting.results import Settings
from tc.base.json_records import Json
from tc.tuner.roofline.roofline import Work

# Cases at a time, at most, and the questions that are asked for them at once.
MOST_AHEAD: Final = 16
_MOST_QUESTIONS: Final = 16

Given = TypeVar("Given")


class MeasurementError(Exception):
    """Nothing can be measured, and why."""


@dataclass(frozen=True, slots=True)
class Lineup:
    """``work``: of the case.  ``ready``: who can be measured, in ``workers``.  ``refused``: who cannot."""

    case: Case
    work: Work
    workers: Mapping[Contender, Worker]
    ready: Mapping[Contender, Ready]
    refused: Mapping[Contender, Refused]


@contextmanager
def lineups(cases: Sequence[Case], settings: Settings, tuned: Mapping[str, Json]) -> Iterator[tuple[Lineup, ...]]:
    """Those of cases, until the block ends.  ``tuned``: options by case, for the contender that uses them.

    The contenders of one case are made ready one after the other: compiling and checking take all cores and much
    memory.  Those of several are made ready at the same time, but for those that time kernels to choose one.
    MeasurementError if the oracle fails.
    """
    with ExitStack() as stack:
        asking = stack.enter_context(ThreadPoolExecutor(_MOST_QUESTIONS if len(cases) > 1 else 1))
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tc-benchmark-"))) for _ in cases]
        works = tuple(asking.map(lambda case, folder: judged(case, settings, folder), cases, folders))
        entries = [
            _Entry(Prepare(case, contender, folder, settings.seed, settings.arrays, options), worker)
            for case, folder in zip(cases, folders, strict=True)
            for contender, options in _contenders(settings, tuned.get(case.name))
            for worker in (stack.enter_context(Worker(settings.threads, settings.target)),)
        ]
        stack.callback(_end, entries)
        first = [entry for entry in entries if entry.question.contender not in TIME_THEMSELVES]
        answers = dict(zip(first, asking.map(_Entry.answer, first), strict=True))
        answers |= {entry: entry.answer() for entry in entries if entry not in answers}
        yield tuple(_lineup(case, work, answers) for case, work in zip(cases, works, strict=True))


def judged(case: Case, settings: Settings, folder: Path) -> Work:
    """The work of a case, whose right results are then in ``folder``.  MeasurementError if the oracle fails."""
    with Worker(settings.threads, settings.target) as worker:
        work = given(worker.ask(Judge(case, folder, settings.seed)), f"the oracle's results of {case.name}")
    assert isinstance(work, Work)
    return work


def given(answer: Given | Refused, what: str) -> Given:
    """The answer; MeasurementError if there is none."""
    if isinstance(answer, Refused):
        raise MeasurementError(f"{what}: {answer.reason}")
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """A contender's question, and the process that is asked."""

    question: Prepare
    worker: Worker

    def answer(self) -> Ready | Refused:
        """The process ends where it refuses."""
        found = self.worker.ask(self.question)
        if isinstance(found, Refused):
            self.worker.stop()
        return found


def _end(entries: Sequence[_Entry]) -> None:
    """Tells all processes to end before anybody waits for one: on a GPU each takes its time to."""
    for entry in entries:
        entry.worker.end()


def _contenders(settings: Settings, tuned: Json | None) -> Iterator[tuple[Contender, Json | None]]:
    """The contenders of a case, and the options of those that are given some."""
    yield Contender.OURS, None
    if tuned is not None:
        yield Contender.TUNED, tuned
    yield Contender.PREALLOCATED, None
    yield from ((peer, None) for peer in settings.peers)


def _lineup(case: Case, work: Work, answers: Mapping[_Entry, Ready | Refused]) -> Lineup:
    workers: dict[Contender, Worker] = {}
    ready: dict[Contender, Ready] = {}
    refused: dict[Contender, Refused] = {}
    for entry, answer in answers.items():
        contender = entry.question.contender
        if entry.question.case is not case:
            continue
        if isinstance(answer, Refused):
            refused[contender] = answer
        else:
            workers[contender], ready[contender] = entry.worker, answer
    return Lineup(case, work, workers, ready, refused)
