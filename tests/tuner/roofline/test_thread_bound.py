"""A kernel of few threads has a lower bound of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.reporting.results import Report
from tc.base.grid import GridKernel
from tc.base.json_records import load_record
from tc.tuner.roofline.roofline import Work
from tc.tuner.roofline.thread_bound import ThreadBound

CLOCK: Final = 2e9
RESULTS: Final = Path(__file__).parents[3] / "benchmarks" / "results" / "cuda.json"


def kernel(blocks: int, threads: int) -> GridKernel:
    return GridKernel("k", (blocks, 1, 1), (threads, 1, 1), 0, ())


def test_the_largest_grid_could_do_all_the_work() -> None:
    bound = ThreadBound(Work(operations=8000, read=0, written=160), CLOCK)
    assert bound.seconds([kernel(1, 1)]) == pytest.approx(2000 / CLOCK)
    assert bound.seconds([kernel(1, 1), kernel(10, 20), kernel(1, 32)]) == pytest.approx(2000 / 200 / CLOCK)
    assert bound.seconds([]) == 0.0


def test_memory_counts_too() -> None:
    bound = ThreadBound(Work(operations=10, read=1600, written=1600), CLOCK)
    assert bound.seconds([kernel(2, 5)]) == pytest.approx(200 / 10 / CLOCK)


def test_nothing_that_a_gpu_ran_was_quicker() -> None:
    report = load_record(Report, RESULTS)
    assert report.machine.accelerator is not None
    checked = 0
    for row in report.rows:
        for measured in row.measured:
            options: Any = measured.options or {}
            if options.get("grid") and options.get("block"):
                grids = [GridKernel("k", tuple(options["grid"]), tuple(options["block"]), 0, ())]
                least = ThreadBound(row.work, report.machine.accelerator.clock).seconds(grids)
                assert 0 < least < min(sample.least for sample in measured.samples), row.case
                checked += 1
    assert checked >= 20
