"""Scatters beside PyTorch's and NumPy's: the contenders compute the same, and the command names what is slow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.__main__ import UsageError, main
from benchmarks.scattering import CASES, HEADER, Found, Histogram, Rows, least_time, measure_cases
from benchmarks.scattering import main as measure_one


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_contenders_compute_the_same(case: Rows | Histogram) -> None:
    small = replace(case, terms=100, rows=7) if isinstance(case, Rows) else replace(case, terms=1000, bins=9)
    if isinstance(case, Rows):
        pytest.importorskip("torch")
    ours, theirs = np.asarray(small.ours()()), np.asarray(small.peer()())
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_the_least_time_of_several_calls_counts() -> None:
    calls: list[int] = []
    assert 0 <= least_time(lambda: calls.append(1), seconds=0) < 1
    assert len(calls) == 3


def test_processes_take_turns() -> None:
    times = iter([4.0, 9.0, 3.0, 6.0] * len(CASES))
    asked: list[tuple[str, str]] = []

    def measure(case: str, contender: str) -> float:
        asked.append((case, contender))
        return next(times)

    found = list(measure_cases(2, measure))
    assert [(own.ours, own.peer, own.ratio) for own in found] == [(3.0, 6.0, 2.0)] * len(CASES)
    assert asked[:4] == [(CASES[0].name, contender) for contender in ("ours", "peer", "ours", "peer")]


def test_the_command_names_what_is_slow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Found(CASES[0], 2e-6, 4e-6), Found(CASES[1], 8e-6, 4e-6)]
    monkeypatch.setattr("benchmarks.scattering.measure_cases", lambda rounds: iter(rows))
    with pytest.raises(SystemExit, match=r"^too slow: embedding-10\^6$"):
        main(["scatters"])
    head, first, second = capsys.readouterr().out.splitlines()
    assert head == HEADER
    assert first.split() == [CASES[0].name, "2", "4", "2.00", "1.00"]
    assert second == rows[1].line


def test_rounds_are_counted_from_one() -> None:
    with pytest.raises((UsageError, SystemExit)):
        main(["scatters", "--rounds", "0"])


def test_one_contender_prints_its_time(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("benchmarks.scattering.least_time", lambda call: 0.25)
    measure_one(["histogram-256", "peer"])
    assert capsys.readouterr().out == "0.25\n"
