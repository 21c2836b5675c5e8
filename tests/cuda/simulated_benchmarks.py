"""What measures on a GPU, with a driver that is not there; ``test_simulated.py`` names this file to pytest.

All events of this driver are 2.5 ms apart.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tc
from benchmarks.latency import MATMUL, report_cuda
from benchmarks.measuring.bench import Bench
from benchmarks.measuring.contender import Contender
from benchmarks.measuring.cuda_clock import cold_wall_clock, event_clock
from benchmarks.measuring.machine import describe_machine
from benchmarks.measuring.messages import (
    Calibrate,
    CheckAgain,
    Judge,
    Measure,
    MeasureRoofs,
    Prepare,
    Ready,
    Refused,
    Sample,
)
from tc.targets.options import GpuOptions, ScheduleOptions
from tc.targets.options_json import to_json
from tc.tuner.roofline.roofline import Roofs, Work
from tests.benchmarks.problems import SEED, small
from tests.cuda.simulator import Simulator, simulator

SECONDS = 2.5e-3
TILED = GpuOptions(ScheduleOptions(tile=(4, 4)), register_accumulators=0)


@pytest.fixture(scope="module")
def gpu() -> Simulator:
    found = simulator()
    found.idle("tc_multiply_add", "tc_read", "tc_copy", "tc_nothing")
    return found


@pytest.fixture(scope="module")
def folder(gpu: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The right results of two small problems, in folders called like these, whose kernels the device can run."""
    found = tmp_path_factory.mktemp("judged")
    for problem in ("tmm", "lut1"):
        case = small(problem)
        arguments = case.problem.arguments(case.sizes, SEED).values()
        for options in (None, TILED):
            gpu.compile(case.problem.comprehension, *arguments, options=options)
        (found / problem).mkdir()
        Bench(1).answer(Judge(case, found / problem, SEED))
    return found


@pytest.fixture
def bench(gpu: Simulator) -> Bench:
    return Bench(1)


@pytest.mark.parametrize("problem", ["tmm", "lut1"])
@pytest.mark.parametrize("contender", [Contender.OURS, Contender.PREALLOCATED, Contender.TUNED])
def test_ours_is_checked_and_timed(bench: Bench, folder: Path, problem: str, contender: Contender) -> None:
    options = dict(to_json(TILED)) if contender is Contender.TUNED else None
    ready = bench.answer(Prepare(small(problem), contender, folder / problem, SEED, Contender.NUMPY, options))
    assert isinstance(ready, Ready), ready
    assert 0 <= ready.deviation < 1
    assert ready.options is not None
    assert ready.options["register_accumulators"] == (0 if contender is Contender.TUNED else 64)
    sample = bench.answer(Measure(0.01))
    assert isinstance(sample, Sample)
    assert sample.least == sample.seconds == sample.most == pytest.approx(SECONDS)
    assert isinstance(bench.answer(CheckAgain()), Ready)


def test_results_of_other_arguments_are_wrong(bench: Bench, folder: Path) -> None:
    answer = bench.answer(Prepare(small("tmm"), Contender.OURS, folder / "tmm", SEED + 1, Contender.NUMPY))
    assert isinstance(answer, Refused)
    assert answer.wrong


@pytest.mark.parametrize(
    ("contender", "reason"),
    [
        (Contender.NUMPY, "NumPy computes on processors"),
        *((contender, "PyTorch finds no GPU") for contender in (Contender.TORCH, Contender.COMPILE, Contender.TRITON)),
        (Contender.OURS, "PyTorch finds no GPU"),
    ],
)
def test_who_has_no_gpu_is_refused(bench: Bench, folder: Path, contender: Contender, reason: str) -> None:
    assert bench.answer(Prepare(small("tmm"), contender, folder / "tmm", SEED, Contender.TORCH)) == Refused(reason)


def test_roofs_follow_from_what_kernels_take(bench: Bench, gpu: Simulator) -> None:
    gpu.log()
    roofs = bench.answer(MeasureRoofs())
    threads, size = 132 * 8 * 256, (1 << 26) // 8
    assert isinstance(roofs, Roofs)
    assert roofs.operations == pytest.approx(2 * 65536 * 12 * threads / SECONDS)
    (bandwidth,) = roofs.bandwidths
    assert bandwidth.working_set == size
    assert bandwidth.read == bandwidth.copied == roofs.fresh == pytest.approx(size / SECONDS)
    assert roofs.launch == pytest.approx(SECONDS)
    assert roofs.bound(Work(0, size, size)) == pytest.approx(2 * SECONDS)
    launches = [line for line in gpu.log() if line.startswith("cuLaunchKernel")]
    names = {re.findall("tc_[a-z_]+", line)[0] for line in launches}
    assert names == {"tc_multiply_add", "tc_read", "tc_copy", "tc_nothing"}
    assert all("grid 1056 1 1, block 256 1 1, shared 0" in line for line in launches)


def test_the_calibrating_kernel_is_timed(bench: Bench) -> None:
    assert bench.answer(Calibrate()) == Ready(0.0, 0.0)
    sample = bench.answer(Measure(0.01))
    assert isinstance(sample, Sample)
    assert sample.seconds == pytest.approx(SECONDS)


def test_caches_are_cold_before_every_call(gpu: Simulator) -> None:
    """More is cleared before a call of a process that is slow, so that the device never waits for it."""
    gpu.log()
    calls: list[int] = []
    sample = event_clock(lambda: calls.append(len(calls)), 8 * SECONDS)
    said = [line for line in gpu.log() if re.match("cuMemset|cuEventRecord", line)]
    assert sample.calls >= 8
    assert len(calls) > sample.calls
    cleared = f"cuMemsetD8Async {2 << 20} on 0"
    assert said[-24:] == 8 * [cleared, "cuEventRecord on 0", "cuEventRecord on 0"]
    slow = cold_wall_clock(lambda: None, 0.0)
    assert [line for line in gpu.log() if line.startswith("cuMemset")] == slow.calls * [cleared]


def test_clocks_give_their_memory_back(gpu: Simulator) -> None:
    before = gpu.blocks
    for clock in (event_clock, cold_wall_clock):
        with pytest.raises(ZeroDivisionError):
            clock(lambda: 1 / 0, 0.0)
    assert gpu.blocks == before


def test_the_gpu_is_described(gpu: Simulator) -> None:
    found = describe_machine(gpu=True).accelerator
    assert found is not None
    assert (found.model, found.architecture, found.multiprocessors) == ("Simulated 0", "sm_90a", 132)
    assert (found.clock, found.memory, found.cache) == (1.98e9, 1 << 26, 1 << 20)
    assert found.driver == "cuda-bindings, CUDA 13.0"
    assert found.compiler.startswith("NVRTC ")
    assert describe_machine().accelerator is None


def test_warm_calls_are_timed_where_there_is_a_gpu(gpu: Simulator, capsys: pytest.CaptureFixture[str]) -> None:
    gpu.compile(tc.define(MATMUL).single(), (8, 8), (8, 8))
    report_cuda()
    assert re.fullmatch(
        r"warm call of mm, 8x8, on a GPU, out= +\d+\.\d\d us   \(target < 15 us\)\n", capsys.readouterr().out
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tc, "targets", lambda: {"cuda": "not available: there is no device"})
        report_cuda()
    assert capsys.readouterr().out == ""
