"""What a run says about the cost of compiling."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.measuring.contender import Contender
from benchmarks.reporting.compilation import compilation
from tc.polyhedral.processor_passes import PASSES
from tests.benchmarks.reports import report, row


def test_every_stage_has_a_column_and_a_candidate_shares_the_schedule() -> None:
    made = row({Contender.OURS: [1.0], Contender.TORCH: [1.0]}, case="some")
    stages = {"scop": 0.001, "schedule": 0.002, "verify schedule": 0.01, "generate": 0.02, "verify code": 0.03}
    stages |= {name: 0.1 for name, _ in PASSES} | {"print": 0.5, "compile": 1.0, "load": 0.25}
    made = replace(made, measured=tuple(replace(measured, stages=stages) for measured in made.measured))
    head, line = compilation(report(made, row({Contender.TORCH: [1.0]}))).splitlines()
    assert head.split()[2:] == ["schedule", "passes", "proofs", "loops", "text", "compiler", "candidate"]
    expected = [
        "some",
        "3.0",
        f"{100.0 * len(PASSES)}",
        "40.0",
        "20.0",
        "500.0",
        "1250.0",
        f"{1810.0 + 100.0 * len(PASSES)}",
    ]
    assert line.split() == expected
