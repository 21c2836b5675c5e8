"""What seems to be the best counts once it was measured again, in turns with the best so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tc.artifact.packing import options_text, pack, unpack
from tc.targets.options import CpuOptions, ScheduleOptions
from tc.tuner.trial.compare_with_best import ROUNDS, compare_with_best
from tc.tuner.trial.measuring import Sampling
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured, Outcome
from tc.tuner.trial.trials import Trials
from tc.tuner.trial.workers import Packed
from tests.tuner import trial_support as trial

DEFAULT, TILED = (options_text(options) for options in (CpuOptions(), CpuOptions(ScheduleOptions(tile=(8,)))))


class Machine:
    """Workers on a machine where ``seconds`` says how long a candidate's call takes at a measurement, by its number.

    Executables are the kernel of ``trial`` with its options as the source.
    """

    def __init__(self, seconds: Callable[[str, int], float]) -> None:
        self.seconds = seconds
        self.slots: dict[str, str] = {}
        self.measured: list[str] = []

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        return [pack(replace(trial.right(), source=text)) for text in options]

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        self.slots[slot] = unpack(packed).source
        return Checked(0.0, "bits")

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        options = self.slots[slot]
        taken = self.seconds(options, len(self.measured))
        self.measured.append(options)
        return Timed((taken,) * 5, 1.0, 1.0) if taken else Failed(FailureKind.CRASH, "")

    def stop_idle(self) -> None:
        raise NotImplementedError


def tried(workers: Machine, *options: str) -> list[Outcome]:
    return [one.outcome for one in Trials(workers, Sampling(10.0), lambda: 0.0).try_all(options)]


def test_one_lucky_measurement_leads_nothing() -> None:
    """The clock says once that the second one takes two fifths of the default: it takes as long."""
    workers = Machine(lambda options, number: 0.4 if number == 3 else 1.01 if options == TILED else 1.0)
    default, tiled = tried(workers, DEFAULT, TILED)
    assert default == Measured(1.0, (1.0,) * 5)
    assert tiled == Measured(1.01, (1.01,) * ROUNDS)
    assert workers.measured == [DEFAULT] * 3 + [TILED] + [DEFAULT, TILED] * ROUNDS


def test_a_default_that_was_measured_on_a_busy_machine_makes_none_quick() -> None:
    """Others work until the default was measured: what comes after takes half of the time, and gains nothing."""
    workers = Machine(lambda _options, number: 2.0 if number < 3 else 1.0)
    default, tiled = tried(workers, DEFAULT, TILED)
    assert isinstance(default, Measured)
    assert isinstance(tiled, Measured)
    assert default.seconds == tiled.seconds == 2.0


def test_what_is_quicker_in_turns_leads_though_the_machine_is_busier_now() -> None:
    workers = Machine(lambda options, number: (0.5 if options == TILED else 1.0) * (1.0 if number < 4 else 3.0))
    default, tiled = tried(workers, DEFAULT, TILED)
    assert default == Measured(1.0, (1.0,) * 5)
    assert tiled == Measured(0.5, (0.5,) * ROUNDS)


def test_who_fails_in_turns_has_failed() -> None:
    workers = Machine(
        lambda options, number: 0.0 if options == TILED and number > 4 else 0.5 if options == TILED else 1.0
    )
    assert tried(workers, DEFAULT, TILED)[1] == Failed(FailureKind.CRASH, "")


def test_a_leader_that_fails_now_changes_nothing() -> None:
    workers = Machine(
        lambda options, number: 0.0 if options == DEFAULT and number > 3 else 0.5 if options == TILED else 1
    )
    assert tried(workers, DEFAULT, TILED)[1] == Measured(0.5, (0.5,) * ROUNDS)


@pytest.mark.parametrize(("seconds", "rounds"), [(0.001, ROUNDS), (10.0, 2)])
def test_slow_calls_are_measured_a_few_times(seconds: float, rounds: int) -> None:
    workers = Machine(lambda _options, _number: seconds)
    workers.slots = {"leader": DEFAULT, "trial": TILED}
    found = compare_with_best(workers, Measured(seconds, (seconds,)), ("leader", "trial"), 0.01)
    assert isinstance(found, Measured)
    assert len(found.samples) == rounds


def test_slower_candidates_are_not_compared_and_earlier_leaders_count() -> None:
    workers = Machine(lambda _options, _number: 1.0)
    trials = Trials(workers, Sampling(0.01), lambda: 0.0)
    trials.follow(DEFAULT, Measured(0.5, (0.5,)))
    trials.follow(DEFAULT, Failed(FailureKind.CRASH, ""))
    assert trials.quickest == 0.5
    assert [one.outcome for one in trials.try_all([TILED])] == [Measured(1.0, (1.0,) * 5)]
    assert workers.measured == [TILED]
    assert Trials(workers, Sampling(0.01), lambda: 0.0).quickest == math.inf
