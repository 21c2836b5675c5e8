"""Which is significantly quicker: distribution-free intervals, and alternating measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import pytest

from tc.tuner.session.confirm import Contender, confirm, interval, is_quicker
from tc.tuner.trial.deadline import Deadline
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tc.tuner.trial.workers import Packed


@pytest.mark.parametrize(("count", "cut"), [(3, 0), (5, 0), (6, 0), (9, 1), (11, 1), (12, 2), (25, 7)])
def test_intervals_are_those_of_tables(count: int, cut: int) -> None:
    """The ranks of the 95 % interval of a median, as tables of the sign test have them."""
    samples = [float(value) for value in range(count)]
    Random(1).shuffle(samples)
    assert interval(samples) == (cut, count - 1 - cut)


def test_intervals_hold_the_median_as_often_as_they_say() -> None:
    random = Random(0)
    held = 0
    for _ in range(2000):
        low, high = interval([random.expovariate(1.0) for _ in range(11)])
        held += low <= math.log(2) <= high
    assert held / 2000 >= 0.95


def test_quicker_means_quicker_in_the_same_rounds() -> None:
    """What changes on the machine changes for both: spread alone says nothing."""
    drift = [1.0, 1.5, 2.0, 1.2, 1.7, 1.1, 1.9, 1.4, 1.3, 1.6, 1.8]
    slow = Contender(tuple(drift), "")
    assert is_quicker(Contender(tuple(0.97 * value for value in drift), ""), slow)
    assert not is_quicker(slow, slow)
    assert not is_quicker(Contender(tuple(reversed(drift)), ""), slow)
    wavering = [0.9 if n % 2 else 1.1 for n in range(11)]
    assert not is_quicker(Contender(tuple(v * w for v, w in zip(drift, wavering, strict=True)), ""), slow)


class Scripted:
    """Workers with given times; ``broken`` fails its check, ``dying`` its second measurement."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.times: dict[str, int] = {}

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        raise NotImplementedError

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        if slot == "broken":
            return Failed(FailureKind.WRONG, "")
        return Checked(0.0, f"bits of {packed.decode()}")

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        assert quickest == math.inf
        self.log.append(slot)
        self.times[slot] = self.times.get(slot, 0) + 1
        if slot == "dying" and self.times[slot] == 2:
            return Failed(FailureKind.CRASH, "")
        return Timed((1.0, float(self.times[slot]), 9.0), 0.0, 0.0)

    def stop_idle(self) -> None:
        raise NotImplementedError


def test_contenders_take_turns_and_those_that_fail_drop_out() -> None:
    workers = Scripted()
    packed = {name: name.encode() for name in ("default", "broken", "dying", "quick")}
    found = confirm(workers, packed, 4, 0.1, lambda _rounds: True)
    assert workers.log == ["default", "dying", "quick"] * 2 + ["default", "quick"] * 2
    assert found == {
        "default": Contender((1.0, 2.0, 3.0, 4.0), "bits of default"),
        "quick": Contender((1.0, 2.0, 3.0, 4.0), "bits of quick"),
    }
    assert found["quick"].seconds == 2.5


def test_comparisons_that_are_cut_short_have_a_round_at_least() -> None:
    found = confirm(Scripted(), {"default": b""}, 11, 0.1, lambda rounds: rounds < 3)
    assert len(found["default"].samples) == 3
    found = confirm(Scripted(), {"default": b""}, 11, 0.1, lambda _rounds: False)
    assert len(found["default"].samples) == 1


class Slow(Scripted):
    """Every measurement takes three seconds of a clock of its own."""

    now = 0.0

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        self.now += 3.0
        return super().time(slot, seconds, quickest)


@pytest.mark.parametrize(("call", "rounds"), [(0.5, 3), (2.0, 0)])
def test_comparisons_end_before_their_deadline(call: float, rounds: int) -> None:
    """Where a call takes so long that none would end in time, none is measured at all."""
    workers = Slow()
    packed = {"default": b"", "quick": b""}
    deadline = Deadline(lambda: workers.now, 20.0)
    found = confirm(workers, packed, 11, 0.1, lambda _rounds: True, deadline=deadline, call=call)
    assert workers.now <= 20.0
    assert {len(contender.samples) for contender in found.values()} == ({rounds} if rounds else set())
