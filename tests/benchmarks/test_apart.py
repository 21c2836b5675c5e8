"""Contenders in processes apart: they compute the same, and the command names what is slow."""

from __future__ import annotations

import functools
import itertools
import subprocess
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.__main__ import UsageError, main
from benchmarks.apart import CASES, HEADER, Found, Process, least_time, measure_cases
from benchmarks.apart import main as measure_one
from benchmarks.problems.backward import BACKWARD, Backward
from benchmarks.problems.indirect import Histogram, Place, Rows, Sparse
from benchmarks.problems.recurrent import Heat, Lstm, Paths, SelectiveScan, Task
from tests.turns import every, one_in


def small(case: Task) -> Task:
    match case:
        case Rows():
            return replace(case, terms=100, rows=7)
        case Histogram():
            return replace(case, terms=1000, bins=9)
        case Sparse(columns=columns):
            return replace(case, rows=50, per_row=3, columns=min(columns, 5))
        case Lstm():
            return replace(case, steps=3, batch=2, size=5)
        case SelectiveScan():
            return replace(case, batch=1, length=4, channels=3, states=2)
        case Paths():
            return replace(case, nodes=7)
        case Heat():
            return replace(case, points=9, steps=3)
        case _:
            raise AssertionError(case)


@one_in(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_contenders_compute_the_same(case: Task) -> None:
    if not isinstance(case, Histogram | Sparse):
        pytest.importorskip("torch")
    ours, theirs = small(case).ours()(), small(case).peer()()
    if isinstance(case, Lstm):
        assert isinstance(ours, tuple)
        assert isinstance(theirs, tuple)
        ours, theirs = ours[0][1:], theirs[0]
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", every(6, BACKWARD), ids=lambda case: case.name)
def test_backward_passes_compute_the_same(case: Backward) -> None:
    pytest.importorskip("torch")
    shapes: Mapping[str, tuple[int, ...]] = {
        name: tuple(min(size, 6) for size in shape) for name, shape in case.shapes.items()
    }
    if "gamma" in shapes and len(shapes["gamma"]) == 1:
        shapes = case.shapes  # the peer knows their number of columns
    least = replace(case, shapes=shapes, indices=dict.fromkeys(case.indices or (), 6))
    ours, theirs = least.ours()(), least.peer()()
    assert isinstance(ours, tuple)
    assert isinstance(theirs, tuple)
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-4)


def test_the_least_time_of_several_calls_counts() -> None:
    calls: list[int] = []
    assert 0 <= least_time(lambda: calls.append(1), seconds=0) < 1
    assert len(calls) == 3


class _Contender:
    """One whose calls take what is known before."""

    def __init__(self, asked: list[tuple[str, str]], case: str, contender: str, times: list[float]) -> None:
        self.asked, self.case, self.contender, self.times = asked, case, contender, itertools.cycle(times)

    def __enter__(self) -> _Contender:
        return self

    def __exit__(self, *raised: object) -> None:
        self.asked.append((self.case, "ended"))

    def turn(self) -> float:
        self.asked.append((self.case, self.contender))
        return next(self.times)


def _started(asked: list[tuple[str, str]], case: str, contender: str, place: Place) -> _Contender:
    assert place is Place.CPU
    return _Contender(asked, case, contender, [4.0, 3.0] if contender == "ours" else [9.0, 6.0])


def test_contenders_take_turns() -> None:
    asked: list[tuple[str, str]] = []
    found = list(measure_cases(2, functools.partial(_started, asked)))
    assert [(own.ours, own.peer, own.ratio) for own in found] == [(3.0, 6.0, 2.0)] * len(CASES)
    first = [own for case, own in asked if case == CASES[0].name]
    assert first == ["ours", "peer"] * (len(first) // 2 - 1) + ["ended"] * 2


def test_processes_wait_for_their_turns() -> None:
    with Process("histogram-256", "peer", Place.CPU) as contender:
        assert contender.turn() > 0
        assert contender.turn() > 0
    with Process("histogram", "peer", Place.CPU) as contender, pytest.raises(subprocess.CalledProcessError):
        contender.turn()


def test_the_command_names_what_is_slow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Found(CASES[0], 2e-6, 4e-6), Found(CASES[1], 8e-6, 4e-6)]
    monkeypatch.setattr("benchmarks.apart.measure_cases", lambda rounds, names, place: iter(rows))
    with pytest.raises(SystemExit, match=r"^too slow: embedding-10\^6$"):
        main(["apart"])
    head, first, second, last = capsys.readouterr().out.splitlines()
    assert head == HEADER
    assert first.split() == [CASES[0].name, "2", "4", "2.00", "1.00"]
    assert second == rows[1].line
    assert last.split() == ["geometric", "mean", "1.00"]


def test_rounds_are_counted_from_one() -> None:
    with pytest.raises((UsageError, SystemExit)):
        main(["apart", "--rounds", "0"])


def test_cases_are_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    start = functools.partial(_started, [])
    found = list(measure_cases(1, start, names=("lstm-1-64", "sparse-vector")))
    assert [own.case.name for own in found] == ["sparse-vector", "lstm-1-64"]
    with pytest.raises(SystemExit):
        main(["apart", "--kernels", "lstm"])
    assert "unknown case 'lstm'; there are embedding-10^4, " in capsys.readouterr().err


def test_one_contender_prints_its_times(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("benchmarks.apart.least_time", lambda call: 0.25)
    measure_one(["histogram-256", "peer", "cpu"], ["\n"] * 2)
    assert capsys.readouterr().out == "0.25\n0.25\n"
