"""What a search does on a GPU, with a driver that is not there; ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tc
from tc.api.comprehension import Comprehension
from tc.artifact.packing import pack
from tc.commands.tune import main
from tc.language.lower.specialize import specialize
from tc.runtime.frameworks.arrays import describe
from tc.store.measured_machine import measured_machine
from tc.targets.options import GpuOptions, ScheduleOptions
from tc.targets.target import CudaTarget, Target
from tc.tuner.session.search_setup import Machines, local_workers
from tc.tuner.trial.checked_calls import keep_calls
from tc.tuner.trial.cuda_trial_memory import CudaTrialMemory, DeviceGuarded
from tc.tuner.trial.measure_handler import MeasureHandler
from tc.tuner.trial.messages import Calibrate, Check, Checked, Done, Prepare, Time, Timed
from tc.tuner.trial.task import Task
from tc.tuner.trial.trial_arrays import random_arrays
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tests.cuda.simulator import Simulator, simulator

TEXT = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
OTHER = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) + B(k,n) }"
SHAPES = ((5, 7), (7, 3))
OPTIONS = GpuOptions(ScheduleOptions(tile=(2, 2)))
SECONDS = 2.5e-3  # of everything that this driver times


@pytest.fixture(scope="module")
def gpu() -> Simulator:
    return simulator()


def packed(gpu: Simulator, text: str = TEXT, target: str = "cuda") -> bytes:
    return pack(gpu.compile(tc.define(text).mm, *SHAPES, options=OPTIONS, target=target).executable)


@pytest.fixture
def bench(gpu: Simulator, tmp_path: Path) -> MeasureHandler:
    """One that is ready to check candidates for a product."""
    comprehension: Comprehension = tc.define(TEXT).mm
    signature = comprehension.compile(*SHAPES, target="emulator").signature
    calls = specialize(comprehension.program, signature)
    keep_calls((calls,), random_arrays(comprehension.program, calls, 3), {}, tmp_path)
    made = MeasureHandler()
    answer, _ = made.answer(Prepare(Task(TEXT, "mm", signature, "cuda:sm_90"), str(tmp_path)), b"")
    assert answer == Done()
    return made


def test_a_candidate_is_checked_and_timed(bench: MeasureHandler, gpu: Simulator) -> None:
    checked, _ = bench.answer(Check("a"), packed(gpu))
    assert isinstance(checked, Checked), checked
    assert 0 <= checked.deviation < 1
    timed, _ = bench.answer(Time("a", 0.01, 1.0), b"")
    assert isinstance(timed, Timed)
    assert timed.samples[0] == pytest.approx(SECONDS)
    assert len(timed.samples) >= 2


def test_candidates_run_on_the_device_that_is_named(bench: MeasureHandler, gpu: Simulator) -> None:
    """Arrays, guards, calls and events are those of the second device."""
    assert bench._task is not None
    assert bench.answer(Prepare(bench._task, str(bench._folder), 1), b"") == (Done(), b"")
    gpu.log()
    checked, _ = bench.answer(Check("a"), packed(gpu, target="cuda:sm_80"))
    assert isinstance(checked, Checked), checked
    timed, _ = bench.answer(Time("a", 0.01, 1.0), b"")
    assert isinstance(timed, Timed)
    launches = [call for call in gpu.log() if call.startswith("cuLaunchKernel")]
    assert launches
    assert all(" on 1:" in call for call in launches)


def test_machines_are_called_by_their_devices(gpu: Simulator) -> None:
    assert [measured_machine(gpu=True, device=device) for device in (0, 1)] == ["Simulated 0", "Simulated 1"]


def test_devices_of_other_kinds_measure_nothing_for_each_other(gpu: Simulator, capsys: Any, tmp_path: Path) -> None:
    (tmp_path / "mm.tc").write_text(TEXT)
    command = [str(tmp_path / "mm.tc"), "--size", "M=5,K=7,N=3", "--cache", str(tmp_path / "tuned.db")]
    refused = {
        ("cuda:sm_80", "0,1"): "a kernel for sm_80 does not run on cuda:0, Simulated 0",
        ("cuda", "7"): "there is no device cuda:7; this process has 2, numbered from 0",
        ("cuda", "0,x"): "devices are written as numbers of GPUs, such as 0,1, got '0,x'",
        ("cuda", "1,1"): "each device measures for itself; name it once, got [1, 1]",
        ("cpu", "0"): "devices are numbers of GPUs, and target 'cpu:",
    }
    for (target, devices), message in refused.items():
        assert main([*command, "--target", target, "--devices", devices]) == 2
        assert message in capsys.readouterr().err, (target, devices)


def test_devices_are_named_in_python(gpu: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first one says what is compiled for; workers have no such driver, so the search ends before it begins."""
    mm, cache, found = tc.define(TEXT).mm, tmp_path / "tuned.db", []

    def tuning(*given: object, **_: object) -> object:
        (machines,) = (value for value in given if isinstance(value, Machines))
        (target,) = (value for value in given if isinstance(value, CudaTarget))
        found.append((machines.device, machines.start_workers is not local_workers, target))
        raise tc.TuningError("enough")

    monkeypatch.setattr("tc.api.tuning.tuning", tuning)
    for devices in ([1], (0,), None):
        with pytest.raises(tc.TuningError, match="enough"):
            mm.tune(*SHAPES, devices=devices, cache=cache, progress=False)
    assert found == [(1, True, CudaTarget("sm_80")), (0, True, CudaTarget("sm_90a")), (0, False, CudaTarget("sm_90a"))]
    refused: dict[str, dict[str, Any]] = {
        "there is no device cuda:7; this process has 2": {"devices": [7]},
        "devices 0 (Simulated 0) and 1 (Simulated 1) differ": {"devices": [0, 1], "target": "cuda:sm_80"},
        "each device measures for itself; name it once, got [1, 1]": {"devices": [1, 1]},
        "devices are numbers of GPUs, and target 'cpu:": {"devices": [0], "target": "cpu"},
        "and workers of a cluster have their own; leave one out": {"devices": [0], "workers": "dask://here:1"},
    }
    for wrong in ([], "0,1", [-1], [True], [0.0], 0):
        refused[f"devices are a list of numbers of GPUs, such as [0, 1], got {wrong!r}"] = {"devices": wrong}
    monkeypatch.setattr("tc.tuner.session.search_setup.check_cuda_device", lambda _architecture, _device: None)
    for message, given in refused.items():
        with pytest.raises(tc.TCError, match=re.escape(message)):
            mm.tune(*SHAPES, cache=cache, progress=False, **given)


def test_a_candidate_that_cannot_win_is_called_once(bench: MeasureHandler, gpu: Simulator) -> None:
    bench.answer(Check("a"), packed(gpu))
    timed, _ = bench.answer(Time("a", 0.01, SECONDS / 10), b"")
    assert isinstance(timed, Timed)
    (sample,) = timed.samples
    assert 0 < sample <= SECONDS  # less what the process took


def test_the_calibrating_kernel_is_timed_before_and_after(bench: MeasureHandler, gpu: Simulator) -> None:
    candidate = packed(gpu)
    assert bench.answer(Calibrate(), candidate) == (Done(), b"")
    bench.answer(Check("a"), candidate)
    timed, _ = bench.answer(Time("a", 0.01, 1.0), b"")
    assert isinstance(timed, Timed)
    assert timed.before == timed.after == pytest.approx(SECONDS)


def test_a_wrong_result_is_noticed(bench: MeasureHandler, gpu: Simulator) -> None:
    answer, _ = bench.answer(Check("a"), packed(gpu, OTHER))
    assert isinstance(answer, Failed)
    assert answer.kind is FailureKind.WRONG


def test_the_next_candidate_has_arguments_that_are_not_overwritten(
    bench: MeasureHandler, gpu: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments stay on the GPU from one candidate to the next, but not after one that failed."""
    candidate = packed(gpu)
    assert isinstance(bench.answer(Check("a"), candidate)[0], Checked)
    first = len(copies(gpu))
    assert isinstance(bench.answer(Check("a"), candidate)[0], Checked)
    assert len(copies(gpu)) < first
    (placed,) = bench._placed.values()
    argument = placed["A"]
    assert isinstance(argument, DeviceGuarded)
    with monkeypatch.context() as patched:
        patched.setattr(CudaTrialMemory, "finish", lambda _: poke(argument, 0))
        answer, _ = bench.answer(Check("a"), candidate)
    assert isinstance(answer, Failed)
    assert answer.kind is FailureKind.OUT_OF_BOUNDS
    assert answer.reason == "the memory of A, which is an argument, was written to"
    assert isinstance(bench.answer(Check("a"), candidate)[0], Checked)


def test_a_device_that_fails_is_a_failure(bench: MeasureHandler, gpu: Simulator) -> None:
    candidate = packed(gpu)
    gpu.fail("cuLaunchKernel", 700)
    answer, _ = bench.answer(Check("a"), candidate)
    assert isinstance(answer, Failed)
    assert answer.kind is FailureKind.DEVICE
    assert "takes no more work from this process" in answer.reason


def test_the_command_finds_the_architecture_of_the_device(
    gpu: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By name, and in a job file; workers have no such driver, so the search itself ends before it begins."""
    targets: list[Target] = []

    def tuning(*given: object, **_: object) -> object:
        targets.extend(value for value in given if isinstance(value, CudaTarget))
        raise tc.TuningError("enough")

    monkeypatch.setattr("tc.commands.tune.tuning", tuning)
    (tmp_path / "mm.tc").write_text(TEXT)
    jobs = 'target = "cuda"\n[[kernel]]\nfile = "mm.tc"\nsizes = [{M = 5, K = 7, N = 3}]\n'
    (tmp_path / "jobs.toml").write_text(jobs)
    cache = ["--cache", str(tmp_path / "tuned.db")]
    assert main([str(tmp_path / "mm.tc"), "--size", "M=5,K=7,N=3", "--target", "cuda", *cache]) == 1
    assert main([str(tmp_path / "jobs.toml"), *cache]) == 1
    assert targets == 2 * [CudaTarget("sm_90a")]


LAYOUTS = [np.zeros((3, 5)), np.zeros((0, 4)), np.float32(1.0), np.zeros((6, 8), np.int16)[::-2, 1::3], np.zeros(4).T]


@pytest.mark.parametrize("like", LAYOUTS, ids=str)
def test_arrays_lie_between_guards(gpu: Simulator, like: npt.NDArray[Any]) -> None:
    array = np.asarray(like)
    array = array.copy() if array.flags.c_contiguous else array
    array[...] = np.arange(array.size).reshape(array.shape)
    memory = CudaTrialMemory()
    placed = memory.place(array)
    assert not memory.is_changed(placed)
    assert placed.is_intact
    np.testing.assert_array_equal(placed.read(), array)
    view = describe(placed, "the array")
    assert view.shape == array.shape
    assert view.memory is not None
    if array.size > 1:
        assert [stride * array.itemsize for stride in view.strides] == list(array.strides)


@pytest.mark.parametrize("offset", [-1, 24])
def test_who_writes_beside_an_array_is_noticed(gpu: Simulator, offset: int) -> None:
    guarded = CudaTrialMemory().guarded((2, 3), np.dtype(np.float32))
    poke(guarded, 0)
    assert guarded.is_intact
    poke(guarded, offset)
    assert not guarded.is_intact


def test_who_writes_to_an_argument_is_noticed(gpu: Simulator) -> None:
    memory = CudaTrialMemory()
    placed = memory.place(np.ones((2, 3), np.float32))
    poke(placed, 5)
    assert placed.is_intact
    assert memory.is_changed(placed)


def copies(gpu: Simulator) -> list[str]:
    return [line for line in gpu.log() if line.startswith("cuMemcpy")]


def poke(array: DeviceGuarded, offset: int) -> None:
    """Writes a byte; the memory of the driver that is not there is ours."""
    ctypes.c_uint8.from_address(describe(array, "the array").address + offset).value = 7
