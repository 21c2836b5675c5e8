"""Candidates are measured beside each other, one on each device, and no time depends on the other."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from tc.artifact.executable import Executable
from tc.artifact.packing import options_text, pack, unpack
from tc.targets.options import CpuOptions
from tc.tuner.trial.measuring import Sampling
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured
from tc.tuner.trial.trials import Trials
from tc.tuner.trial.workers import Limits, LocalWorkers, Packed
from tests.tuner import trial_support as trial


class Device:
    """Times what has the number n in its source as n milliseconds; waits until ``together`` devices do so at once."""

    def __init__(self, together: threading.Barrier | None) -> None:
        self.together = together
        self.checked: list[str] = []
        self.slots: dict[str, float] = {}

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        source = unpack(packed).source
        if slot == "trial":
            self.checked.append(source)
            if self.together is not None:
                self.together.wait()
        self.slots[slot] = float(source) / 1e3
        return Checked(0.0, "bits")

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        return Timed((self.slots[slot],) * 5, 1.0, 1.0)


class Numbered(Device):
    """Workers whose sources are the numbers of threads."""

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        made = trial.right()
        return [pack_numbered(made, text) for text in options]

    def stop_idle(self) -> None:
        pass


def pack_numbered(made: Executable, text: str) -> Packed:
    options = CpuOptions.from_json(text)
    return pack(replace(made, options=options, source=str(options.threads)))


def tried(numbers: Sequence[int], devices: int, together: threading.Barrier | None) -> tuple[list[float], list[Device]]:
    measurers = [Device(together) for _ in range(devices)]
    trials = Trials(Numbered(None), Sampling(0.01), lambda: 0.0, measurers=measurers)
    found = trials.try_all([options_text(CpuOptions(threads=number)) for number in numbers])
    assert all(isinstance(one.outcome, Measured) for one in found)
    assert trials.leader is not None
    assert trials.leader.measured.seconds == min(numbers) / 1e3
    return [one.outcome.seconds for one in found if isinstance(one.outcome, Measured)], measurers


def test_every_device_measures_its_part_at_the_same_time() -> None:
    # Who waited alone would wait for ever.
    times, measurers = tried([7, 5, 9, 2], 2, threading.Barrier(2))
    assert times == [0.007, 0.005, 0.009, 0.002]
    assert [measurer.checked for measurer in measurers] == [["7", "9"], ["5", "2"]]


def test_one_device_measures_all() -> None:
    times, (measurer,) = tried([7, 5, 9, 2], 1, None)
    assert times == [0.007, 0.005, 0.009, 0.002]
    assert measurer.checked == ["7", "5", "9", "2"]


def test_a_source_is_measured_once() -> None:
    trials = Trials(Numbered(None), Sampling(0.01), lambda: 0.0, measurers=(measurers := [Device(None), Device(None)]))
    texts = [options_text(CpuOptions(threads=3, packed_operands=packed)) for packed in (0, 1, 2)]
    found = trials.try_all(texts)
    assert len({id(one) for one in found}) == 1
    assert [measurer.checked for measurer in measurers] == [["3"], []]


def test_what_its_threads_make_hopeless_does_not_run() -> None:
    measurer = Device(None)
    least = {"1": 0.1, "2": 0.004, "3": 0.006}
    trials = Trials(
        Numbered(None),
        Sampling(0.01),
        lambda: 0.0,
        measurers=(measurer,),
        least=lambda packed: least[unpack(packed).source],
    )
    found = trials.try_all([options_text(CpuOptions(threads=number)) for number in (1, 2, 3)])
    # The first one, the default, runs whatever is said of it.
    assert [isinstance(one.outcome, Measured) for one in found] == [True, True, False]
    reason = "its threads need 0.006 s at least, and the best call takes 0.001 s"
    assert found[2].outcome == Failed(FailureKind.SLOW, reason)
    assert measurer.checked == ["1", "2"]


def test_there_is_a_process_for_each_device() -> None:
    with trial.folder() as folder, LocalWorkers(trial.TASK, folder, 1, Limits(), devices=(0, 3)) as workers:
        assert len(workers.measurers) == 2
        packed = pack(trial.right())
        for measurer in workers.measurers:
            assert isinstance(measurer.check(packed, "trial"), Checked)
        assert len(workers.processes) == 2
        assert isinstance(workers.measurers[1].time("trial", 0.001, 1.0), Timed)


def test_what_is_predicted_to_be_slow_does_not_run() -> None:
    """The default, then one that is predicted to take twice as long, and one that is to take four times."""
    device = Device(None)
    trials = Trials(
        Numbered(None),
        Sampling(0.01),
        lambda: 0.0,
        measurers=[device],
        predicted=lambda packed: float(unpack(packed).source),
    )
    found = trials.try_all([options_text(CpuOptions(threads=number)) for number in (1, 2, 4)])
    assert [type(own.outcome) for own in found] == [Measured, Measured, Failed]
    slow = found[2].outcome
    assert isinstance(slow, Failed)
    assert slow.kind is FailureKind.SLOW
    assert slow.reason == "it is predicted to take 4 s, 4 times as long as the best so far"
    assert device.checked == ["1", "2"]
    assert [own.predicted for own in found] == [1.0, 2.0, None]
