"""Who may compete at the end, and who wins."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tc.artifact.packing import options_text
from tc.targets.options import CpuOptions
from tc.tuner.session.confirm import Contender
from tc.tuner.session.final_comparison import winner_of
from tc.tuner.trial.compare_with_best import Leader
from tc.tuner.trial.measuring import Sampling
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured
from tc.tuner.trial.trials import Trials
from tc.tuner.trial.workers import Packed


def contender(seconds: float, numerics: str = "same") -> Contender:
    return Contender(tuple(seconds * (1 + 0.001 * n) for n in range(11)), numerics)


def test_who_is_quickest_beyond_doubt_wins() -> None:
    found = {"default": contender(1.0), "4": contender(0.8), "9": contender(0.7)}
    assert winner_of(found, bitwise=False) == "9"
    assert winner_of({**found, "incumbent": contender(0.7)}, bitwise=False) == "incumbent"
    assert winner_of({**found, "incumbent": contender(0.9)}, bitwise=False) == "9"


def test_a_gain_that_is_not_worth_a_change_is_none() -> None:
    assert winner_of({"default": contender(1.0), "4": contender(0.995)}, bitwise=False) == "default"


def test_bitwise_winners_compute_the_bits_of_the_default() -> None:
    found = {"default": contender(1.0), "4": contender(0.5, "others"), "9": contender(0.8)}
    assert winner_of(found, bitwise=True) == "9"
    assert winner_of(found, bitwise=False) == "4"


class Scripted:
    """Workers whose executables are the options; ``noisy``: calibrations before and after, one pair a measurement."""

    def __init__(self, noisy: Sequence[tuple[float, float]] = ()) -> None:
        self.noise = list(noisy)
        self.quickest: list[float] = []
        self.limits: list[float] = []

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        self.limits.append(limit)
        return [Failed(FailureKind.COMPILE, "") for _ in options]

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        return Checked(0.0, "bits")

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        before, after = self.noise.pop(0)
        self.quickest.append(quickest)
        return Timed((before, before, before, 9.0), before, after)

    def stop_idle(self) -> None:
        raise NotImplementedError


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.5
        return self.now


def test_only_the_default_may_compile_for_long() -> None:
    workers = Scripted()
    trials = Trials(workers, Sampling(0.1), Clock())
    default = options_text(CpuOptions())
    assert [tried.outcome for tried in trials.try_all([default])] == [Failed(FailureKind.COMPILE, "")]
    trials.try_all(["{}", "[]"])
    assert workers.limits == [600.0, 3.0]


def led(trials: Trials, seconds: float) -> None:
    """From now on, the leader takes so long."""
    trials.leader = Leader("{}", Measured(seconds, (seconds,)))


def test_what_is_measured_while_the_machine_is_busy_is_measured_again() -> None:
    workers = Scripted([(1.0, 1.0), (1.3, 1.0), (1.0, 1.6), (1.2, 1.1)])
    trials = Trials(workers, Sampling(0.1), Clock())
    led(trials, 1.0)
    first = trials._measured({"source": b""})[0]
    assert first.outcome == Measured(1.0, (1.0, 1.0, 1.0, 9.0))
    led(trials, 0.9)
    second = trials._measured({"source": b""})[0]
    # Of three measurements, all of them noisy, the least noisy one counts.
    assert second.outcome == Measured(1.2, (1.2, 1.2, 1.2, 9.0))
    assert workers.quickest == [1.0, 0.9, 0.9, 0.9]
    assert workers.noise == []


def test_who_is_too_slow_even_for_a_busy_machine_is_measured_once() -> None:
    workers = Scripted([*[(1.0, 1.0)] * 3, (1.3, 1.0)])
    trials = Trials(workers, Sampling(0.1), Clock())
    trials._measured({"source": b""})[0]
    led(trials, 0.6)
    assert trials._measured({"source": b""})[0].outcome == Measured(1.3, (1.3, 1.3, 1.3, 9.0))
    assert workers.noise == []


def test_what_is_measured_first_is_measured_until_the_quickest_is_repeated() -> None:
    """Nothing says whether the machine was awake, or at rest."""
    workers = Scripted([(1.7, 1.6), (1.1, 1.2), (1.4, 1.2), (1.2, 1.2)])
    trials = Trials(workers, Sampling(0.1), Clock())
    assert trials._measured({"source": b""})[0].outcome == Measured(1.1, (1.1, 1.1, 1.1, 9.0))
    assert workers.quickest == [math.inf] * 4
