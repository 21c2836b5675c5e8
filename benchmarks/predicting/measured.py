"""Our kernels as they were measured on a GPU: what they asked for, and how long they took.

``cuda-counts.json`` has what the loops of the measured commits ask for, counted by today's counter in checkouts of
these commits, and what their assembler said: today's code makes other loops for some of the cases.  The commits of the
first two runs, on an H100, are too old for the counter; their kernels took as long as the next day's on an H200 where
memory does not decide, and are taken for the same.  Nothing of the model was changed for the fifth run.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.measuring.contender import Contender
from benchmarks.reporting.results import Report, Row
from tc.base.json_records import load_record
from tc.prediction.counts import KernelCount

RESULTS: Final = Path(__file__).parents[1] / "results"
COUNTS: Final = RESULTS / "cuda-counts.json"
_EARLIER: Final = ("cuda.json", "cuda-2.json")
FIFTH: Final = "cuda-5.json"
_DEVICES: Final = {"NVIDIA H200": "H200", "NVIDIA H100 80GB HBM3": "H100"}
_OURS: Final = (Contender.PREALLOCATED, Contender.OURS)


@dataclass(frozen=True, slots=True)
class CountedKernel:
    """One kernel of a case; ``registers``: of a thread."""

    count: KernelCount
    registers: int


@dataclass(frozen=True, slots=True)
class Counts:
    """By report and case, the kernels that were measured."""

    reports: dict[str, dict[str, tuple[CountedKernel, ...]]]


@dataclass(frozen=True, slots=True)
class Times:
    """Medians of a case in microseconds: of ours, and of PyTorch's, where there is such."""

    case: str
    ours: float
    torch: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Kernels that one process measured one after the other.  ``commit``: which one's; ``how``: in words.

    ``suite``: products, convolutions, rows and scans of float32.  ``matrices``: by matrix instructions.
    ``written``: kernels that are written by hand, to see what a change of the generated ones would gain.
    """

    commit: str
    device: str
    machine: str
    how: str
    suite: tuple[Times, ...]
    matrices: tuple[Times, ...]
    written: tuple[Times, ...]


@dataclass(frozen=True, slots=True)
class MeasuredCase:
    """``seconds``: the median of the rounds with results that exist already, where there are such."""

    report: str
    case: str
    device: str
    kernels: tuple[CountedKernel, ...]
    seconds: float


def measured() -> Iterator[MeasuredCase]:
    """All cases whose kernels are counted, and those of the first runs."""
    counts = load_record(Counts, COUNTS)
    runs = {name: cases for name, cases in counts.reports.items() if name != FIFTH}
    for name, cases in runs.items():
        yield from _measured(name, cases)
    run = load_record(Run, RESULTS / FIFTH)
    for own in (*run.suite, *run.matrices):
        yield MeasuredCase(FIFTH, own.case, run.device, counts.reports[FIFTH][own.case], 1e-6 * own.ours)
    kernels = {case: own for cases in runs.values() for case, own in cases.items()}
    for name in _EARLIER:
        yield from _measured(name, kernels)


def _measured(name: str, kernels: Mapping[str, tuple[CountedKernel, ...]]) -> Iterator[MeasuredCase]:
    report = load_record(Report, RESULTS / name)
    assert report.machine.accelerator is not None, "they were measured on GPUs"
    device = _DEVICES[report.machine.accelerator.model]
    for row in report.rows:
        if row.case in kernels:
            yield MeasuredCase(name, row.case, device, kernels[row.case], _seconds(row))


def _seconds(row: Row) -> float:
    by_contender = {one.contender: one for one in row.measured}
    ours = next(by_contender[contender] for contender in _OURS if contender in by_contender)
    return statistics.median(sample.seconds for sample in ours.samples)
