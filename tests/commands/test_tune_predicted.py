"""``tc-tune`` for an NVIDIA GPU on a machine without one: winners are predicted, and go behind all that is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tc.artifact.packing import pack, unpack
from tc.base.environment import environment
from tc.base.errors import DeviceError
from tc.cache.content.store import Store
from tc.cache.format.records import PREDICTED
from tc.cache.format.tables import MEASUREMENTS, TRIALS
from tc.commands.tune import main
from tc.compiler import build
from tc.language.lower.interface import interface_of
from tc.language.lower.specialize import specialize
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.targets.options import GpuOptions
from tc.targets.target import parse_target
from tc.tuner.session.predicted_workers import PredictedWorkers, no_prediction, predicted_seconds
from tc.tuner.trial.messages import EMPTY, Checked, Timed
from tc.tuner.trial.task import parse_task
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tc.tuner.trial.workers import Packed
from tests.commands.caches import contents
from tests.tuner import trial_support as trial

TEXT = "def rows(float(M,N) x) -> (y) { y(m) +=! x(m,r_n) }"


MACHINE = "H200 (predicted)"


def has_gpu() -> bool:
    try:
        return bool(cuda_driver().devices())
    except DeviceError:
        return False


pytestmark = pytest.mark.skipif(has_gpu(), reason="times are measured where there is a GPU")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    path = tmp_path / "rows.tc"
    path.write_text(TEXT)
    return path


def test_winners_are_predicted(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = tmp_path / "tuned.db"
    command = [str(file), "--size", "M=64,N=512", "--target", "cuda:sm_90", "--cache", str(cache)]
    assert main([*command, "--budget", "3 trials", "--jobs", "1"]) == 0
    assert " us (predicted), " in capsys.readouterr().out
    with contents(cache) as found:
        measurements, trials = (
            [one for one, _ in found.records(MEASUREMENTS)],
            [one for one, _ in found.records(TRIALS)],
        )
    assert {(one.machine, one.policy, one.predicted) for one in measurements} == {(MACHINE, PREDICTED, True)}
    assert {one.machine for one in trials} == {MACHINE}
    assert all(one.numerics == "" for one in trials)
    assert {one.reason for one in trials if one.seconds is not None} == {
        f"predicted {one.seconds:.4g} s" for one in trials if one.seconds is not None
    }


def test_calls_take_what_is_predicted_only_where_nothing_is_measured(file: Path, tmp_path: Path) -> None:
    cache = tmp_path / "tuned.db"
    command = [str(file), "--size", "M=64,N=512", "--target", "cuda:sm_90", "--cache", str(cache)]
    assert main([*command, "--budget", "3 trials", "--jobs", "1", "--quiet"]) == 0
    with contents(cache) as found:
        predicted = [one for one, _ in found.records(MEASUREMENTS) if one.predicted]
    best, *others = sorted(predicted, key=lambda one: one.seconds)
    reader = Store.open(cache).reader
    chosen = reader.winner(best.kernel, "NVIDIA H200", 1)
    assert chosen is not None
    assert chosen.identity == best.variant
    slow = replace(best, machine="NVIDIA A100", policy="cold", seconds=1.0, options=(others or [best])[0].options)
    Store.open(cache).add_measurement(slow)
    chosen = Store.open(cache).reader.winner(best.kernel, "NVIDIA H200", 1)
    assert chosen is not None
    assert chosen.identity == slow.variant


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--target", "cuda:sm_75"), "without a GPU only where times are predicted: sm_80, sm_86"),
        (("--target", "cuda:sm_90", "--numerics", "bitwise"), "bitwise numerics are compared on a GPU; leave them out"),
    ],
)
def test_what_is_not_predicted(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    command = [str(file), "--size", "M=64,N=512", "--cache", str(tmp_path / "tuned.db"), *arguments]
    assert main([*command, "--budget", "3 trials", "--jobs", "1"]) == 1
    assert complaint in capsys.readouterr().out


class Builders:
    """Workers that build nothing."""

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        return [Failed(FailureKind.ILLEGAL, text) for text in options]

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        raise AssertionError("nothing runs")

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        raise AssertionError("nothing runs")

    def stop_idle(self) -> None:
        pass


def test_workers_time_nothing_that_is_for_processors() -> None:
    workers, packed = PredictedWorkers(Builders()), pack(trial.right())
    assert predicted_seconds(packed) is None
    assert no_prediction(packed) is None
    assert isinstance(workers.check(packed, "trial"), Failed)
    assert workers.time("trial", 1.0, 1.0) == EMPTY
    assert workers.build(["{}"], 1.0) == [Failed(FailureKind.ILLEGAL, "{}")]


def test_workers_time_what_is_for_a_gpu() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    task = replace(trial.TASK, target="cuda:sm_90")
    program = parse_task(task)
    built = build(
        specialize(program, task.signature),
        interface_of(program),
        GpuOptions(),
        parse_target(task.target),
        environment(),
    )
    workers, packed = PredictedWorkers(Builders()), pack(built.executable)
    assert workers.check(packed, "trial") == Checked(0.0, "")
    expected = unpack(packed).predicted
    assert expected is not None
    assert workers.time("trial", 1.0, 1.0) == Timed((expected.seconds,), 0.0, 0.0)
    assert predicted_seconds(packed) == expected.seconds
