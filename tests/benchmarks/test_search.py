"""What a run of searches says in the end."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.searching.search import line, summary
from benchmarks.searching.tuned import Winner, Winners

WINNER = Winner({}, 1e-3, (0.9e-3, 1.1e-3), 2e-3, None, "Abacus 7", 40, {"crashed": 2, "timed out": 1}, "10m", 0, "")


def test_a_line_for_a_case() -> None:
    assert line("tmm", WINNER).split() == ["tmm", "2,000.0", "1,000.0", "2.00", "40", "3"]


def test_gains_of_all_cases() -> None:
    assert summary(Winners({})) == "nothing was tuned"
    same = replace(WINNER, default_seconds=WINNER.seconds)
    found = summary(Winners({"a": WINNER, "b": same, "c": same}))
    assert found == "median gain 1.000, geometric mean 1.260, 1 of 3 cases have a winner beside the default"
