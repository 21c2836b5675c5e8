"""Reports of runs that never were, and contenders that only say that they were timed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.measuring.contender import Contender
from benchmarks.measuring.machine import Machine
from benchmarks.measuring.messages import Measure, Refused, Sample
from benchmarks.problems.case import Suite
from benchmarks.reporting.results import Measured, Missing, Report, Row, Settings
from tc.tuner.roofline.roofline import Bandwidth, Roofs, Work

MACHINE = Machine(
    model="Abacus 7",
    cores=2,
    caches={"L1 data": "32K, processors 0"},
    features=("avx2",),
    memory=1 << 30,
    system="Linux 6.1, Python 3.11",
    huge_pages="always [madvise] never",
    compiler="cc 12",
    libraries={"numpy": "2.4"},
)
# 1e9 operations a second; caches twice as quick as memory; new memory half as quick.
ROOFS = Roofs(1e9, (Bandwidth(1 << 10, 2e9, 1e9), Bandwidth(1 << 20, 1e9, 1e9)), fresh=5e8)
QUIET = 1e-3
NO_WORK = Work(0, 0, 0)


def sample(seconds: float, faults: float = 0.0) -> Sample:
    return Sample(seconds, 0.9 * seconds, 1.1 * seconds, calls=10, faults=faults)


def row(
    times: Mapping[Contender, Sequence[float]],
    *,
    case: str = "tmm",
    minimum: float = 1.5,
    work: Work = NO_WORK,
    calibrations: Sequence[float] | None = None,
    missing: tuple[Missing, ...] = (),
    faults: float = 0.0,
) -> Row:
    rounds = max(map(len, times.values()), default=0)
    return Row(
        case=case,
        suite=Suite.PAPER,
        sizes={"M": 3},
        minimum=minimum,
        work=work,
        calibrations=tuple(calibrations or [QUIET] * (rounds + 1)),
        measured=tuple(
            Measured(contender, tuple(sample(s, faults) for s in seconds), 0.1, 0.5, {"unroll": 2}, {"schedule": 0.1})
            for contender, seconds in times.items()
        ),
        missing=missing,
    )


def report(*rows: Row, rounds: int = 3) -> Report:
    settings = Settings(threads=2, rounds=rounds, peers=(Contender.TORCH, Contender.NUMPY))
    return Report("2026-01-02T03:04:05+00:00", "0123abc", MACHINE, settings, ROOFS, rows)


@dataclass
class Scripted:
    """Answers with these seconds one after the other, and notes in a diary that it was asked."""

    name: str
    answers: Iterator[float | Refused]
    diary: list[str] = field(default_factory=list)

    def ask(self, question: Measure) -> Sample | Refused:
        self.diary.append(self.name)
        answer = next(self.answers)
        return answer if isinstance(answer, Refused) else sample(answer)
