"""Turns, and what happens when the machine is not quiet or a contender drops out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

import pytest

from benchmarks.measuring.messages import Refused
from benchmarks.measuring.rounds import Calibration, Rounds, quiet_rounds, take_turns
from tests.benchmarks.reports import Scripted


def turns(
    answers: dict[str, Iterable[float | Refused]], calibrations: Iterable[float], *, rounds: int, most: int = 9
) -> tuple[Rounds[str], list[str]]:
    diary: list[str] = []
    entrants = {name: Scripted(name, iter(seconds), diary) for name, seconds in answers.items()}
    calibration = Calibration(Scripted("=", iter(calibrations), diary), 0.01)
    taken = take_turns(entrants, calibration, rounds=rounds, most=most, seconds=0.1, rest=lambda: diary.append("."))
    return taken, diary


def seconds(taken: Rounds[str], name: str) -> list[float]:
    return [sample.seconds for sample in taken.samples[name]]


def test_contenders_take_turns_between_calibrations() -> None:
    taken, diary = turns({"a": [1.0, 2.0], "b": [3.0, 4.0]}, repeat(1.0), rounds=2)
    assert "".join(diary) == "=.a.b.=.a.b.=."
    assert (seconds(taken, "a"), seconds(taken, "b")) == ([1.0, 2.0], [3.0, 4.0])
    assert taken.calibrations == (1.0, 1.0, 1.0)


def test_noisy_rounds_are_kept_and_followed_by_others() -> None:
    taken, _ = turns({"a": repeat(1.0)}, [1.0, 1.2, 1.0, 1.0, 1.04], rounds=2)
    assert len(seconds(taken, "a")) == 4
    assert quiet_rounds(taken.calibrations, 1.0) == (2, 3)


def test_a_machine_that_was_never_quiet_makes_earlier_rounds_noisy() -> None:
    taken, _ = turns({"a": repeat(1.0)}, [2.0, 2.0, 1.0, 1.0, 1.0], rounds=2)
    assert len(seconds(taken, "a")) == 4


def test_patience_ends() -> None:
    taken, _ = turns({"a": repeat(1.0)}, [1.0, *repeat(2.0, 20)], rounds=2, most=5)
    assert len(seconds(taken, "a")) == 5


def test_whoever_refuses_drops_out() -> None:
    taken, diary = turns({"a": [1.0, Refused("dead")], "b": repeat(2.0)}, repeat(1.0), rounds=3)
    assert "".join(diary).replace(".", "") == "=ab=ab=b="
    assert set(taken.samples) == {"b"}
    assert taken.refused == {"a": Refused("dead")}


def test_nothing_is_measured_without_a_calibration() -> None:
    calibration = Calibration(Scripted("=", iter([Refused("dead")])), 0.01)
    with pytest.raises(RuntimeError, match="the calibrating kernel does not run: dead"):
        calibration.measure()
