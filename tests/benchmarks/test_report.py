"""What people see of a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measuring.contender import Contender
from benchmarks.reporting.plot import plot
from benchmarks.reporting.report import failures, line, markdown, summary
from benchmarks.reporting.results import Missing, Report
from tests.benchmarks.reports import QUIET, report, row

OURS, TUNED, TORCH, NUMPY = Contender.OURS, Contender.TUNED, Contender.TORCH, Contender.NUMPY


def some_report() -> Report:
    return report(
        row({OURS: [2e-3] * 3, TUNED: [1e-3] * 3, TORCH: [4e-3] * 3}, case="fast"),
        row(
            {OURS: [15e-6] * 3, NUMPY: [12.34e-6] * 3},
            case="slow",
            calibrations=[QUIET, 2 * QUIET, QUIET, QUIET],
            missing=(Missing(TORCH, "torch is not installed"),),
        ),
    )


def test_a_line_names_the_best_of_both_and_who_is_missing() -> None:
    made = some_report()
    fast, slow = (line(found, made) for found in made.rows)
    assert fast.split() == ["fast", "PyTorch", "4,000", "tuned", "1,000", "4.00", "1.50", "0", "%", "reached"]
    first, second = slow.splitlines()
    assert first.split() == ["slow", "NumPy", "12.3", "15.0", "0.82", "1.50", "0", "%", "missed,", "noisy"]
    assert second.split() == ["PyTorch:", "torch", "is", "not", "installed"]


def test_the_summary_counts_verdicts() -> None:
    assert summary(some_report()) == "geometric mean of best peer / ours: 1.81; 1 reached, 1 missed"
    assert summary(report()) == "geometric mean of best peer / ours: -; no cases"


def test_the_table_has_a_column_for_everybody_who_was_measured() -> None:
    head, rule, fast, slow, *notes = markdown(some_report()).splitlines()
    assert head == (
        "| kernel | ours | ours, tuned | PyTorch | NumPy | best peer / ours | at least | of the bound | fresh outputs |"
    )
    assert rule.count("|") == head.count("|")
    assert fast == "| fast | 2,000 | **1,000** | **4,000** |  | 4.00 | 1.5 | 0 % |  |"
    assert slow == "| slow | **15.0** |  |  | **12.3** | 0.82 (missed) (noisy) | 1.5 | 0 % |  |"
    text = " ".join(notes)
    assert "2 threads on Abacus 7 (2 cores, Linux 6.1, Python 3.11, numpy 2.4, cc 12)" in text
    assert "1 GFLOP/s and 1.0 GB/s" in text
    assert "best peer / ours: 1.81." in text


def test_wrong_results_and_ours_missing_are_failures() -> None:
    made = report(
        row({OURS: [1.0] * 3}, case="one", missing=(Missing(TORCH, "off", wrong=True), Missing(NUMPY, "absent"))),
        row({}, case="two", calibrations=[QUIET], missing=(Missing(OURS, "OptionsError: no"),)),
    )
    assert failures(made) == ("one, PyTorch: off", "two, ours: OptionsError: no")
    assert failures(some_report()) == ()


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "pictures" / "results.png"
    plot(some_report(), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        plot(report(row({OURS: [1.0] * 3})), Path("never"))
