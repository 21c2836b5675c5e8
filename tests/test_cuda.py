"""CUDA without a GPU: what NVRTC accepts, what its assembler says, and how that is reported."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tc
from tc.dispatch.kernel import Kernel
from tc.language.program.functions import FUNCTIONS
from tc.runtime.cuda.nvrtc import check_architecture, compile_cuda, compiling_cuda, kernel_uses
from tc.runtime.host.binary import KernelUse
from tc.targets.multiprocessor import MULTIPROCESSORS
from tests.comprehensions.case import Case
from tests.comprehensions.corpus import CASES
from tests.gpu_cases import OPTIONS, SOME, fitting
from tests.turns import every, one_in

pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")

ARCHITECTURES = ("sm_80", "sm_90", "sm_100a")
MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
TILED = tc.GpuOptions(tc.ScheduleOptions(tile=(64, 64, 16)), block=(16, 16))


@one_in(3)
@pytest.mark.parametrize("number", every(2, range(len(SOME))), ids=[case.name for case in SOME])
def test_some_of_the_corpus_compiles(number: int) -> None:
    """For one architecture and one set of options each, by turns; all are in ``test_all_combinations_compile``."""
    options = tuple(OPTIONS.values())
    compile_case(SOME[number], options[number % len(options)], ARCHITECTURES[number % len(ARCHITECTURES)])


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_combinations_compile(case: Case, options: tc.GpuOptions, architecture: str) -> None:
    compile_case(case, options, architecture)


def compile_case(case: Case, options: tc.GpuOptions, architecture: str) -> None:
    definitions = tc.define(case.text)
    comprehension = definitions[case.definition] if case.definition else definitions.single()
    inputs = case.make_inputs(np.random.default_rng(zlib.crc32(case.name.encode())), case.large_ragged_sizes)
    kernel = fitting(
        lambda chosen: comprehension.compile(*inputs.values(), target=f"cuda:{architecture}", options=chosen), options
    )
    check_shared(kernel)
    for grid in kernel.resources.grids:
        assert 0 < grid.registers <= 255
        assert 0 < grid.occupancy <= 1


def check_shared(kernel: Kernel) -> None:
    """The assembler counts as much shared memory as we do, or less where the compiler leaves out the end of it."""
    for grid, resources in zip(kernel.executable.convention.grids, kernel.resources.grids, strict=True):
        assert (grid.shared_bytes > 0) == (resources.shared > 0)
        # An alignment of 64 bytes is all that is never touched.
        assert grid.shared_bytes - 64 < resources.shared <= grid.shared_bytes


@one_in(3)
@pytest.mark.parametrize("architecture", every(2, ["sm_90", "sm_75"]))
@pytest.mark.parametrize("type", every(2, ["float", "double", "bfloat16", "float16"]))
def test_all_functions_compile(type: str, architecture: str) -> None:
    """In all rows, so that what is called is in the library of the machine."""
    calls = {name: ", ".join(f"X{n}(i)" for n in range(function.arity)) for name, function in FUNCTIONS.items()}
    results = ", ".join(f"Y_{name}" for name in calls)
    statements = "  ".join(f"Y_{name}(i) = {name}({operands})" for name, operands in calls.items())
    arguments = ", ".join(f"{type}(N) X{n}" for n in range(4))
    functions = tc.define(f"def all({arguments}) -> ({results}) {{ {statements} }}").all
    functions.compile((64,), (64,), (64,), (64,), target=f"cuda:{architecture}")


def test_resources_are_those_of_the_assembler() -> None:
    kernel = MM.compile((1024, 1024), (1024, 1024), target="cuda:sm_90", options=TILED)
    (grid,) = kernel.resources.grids
    assert (grid.grid, grid.block) == ((16, 16, 1), (16, 16, 1))
    assert (grid.stack, grid.spill_stores, grid.spill_loads) == (0, 0, 0)
    assert 16 < grid.registers < 128
    assert grid.shared >= 2 * 64 * 16 * 4
    assert grid.occupancy == MULTIPROCESSORS["sm_90"].occupancy(256, grid.registers, grid.shared)
    assert str(kernel.target) == "cuda:sm_90"


@pytest.mark.parametrize(
    ("options", "dynamic"),
    [
        (TILED, False),
        (replace(TILED, padding=1, stages=3), False),
        (replace(TILED, shared_memory=0), False),
        (replace(TILED, shared_memory=64 << 10, stages=6), True),
        (tc.GpuOptions(split_k_threads=(64,), shuffles=False), False),
    ],
    ids=["tiles", "three stages", "none", "more than a kernel may declare", "partial results"],
)
def test_shared_memory_is_what_the_assembler_says(options: tc.GpuOptions, dynamic: bool) -> None:
    kernel = MM.compile((1024, 1024), (1024, 1024), target="cuda:sm_90", options=options)
    check_shared(kernel)
    (grid,) = kernel.executable.convention.grids
    assert (grid.shared_bytes > 0) == (options.shared_memory != 0)
    assert (grid.dynamic_bytes > 0) == dynamic


def test_registers_leave_room_for_as_many_blocks_as_the_options_say() -> None:
    used = []
    for resident in (1, 2, 6):
        options = replace(TILED, min_blocks_per_multiprocessor=resident)
        kernel = MM.compile((1024, 1024), (1024, 1024), target="cuda:sm_90", options=options)
        (grid,) = kernel.resources.grids
        assert MULTIPROCESSORS["sm_90"].resident(256, grid.registers, 0) >= resident
        used.append(grid.registers)
    assert used[0] > used[-1]
    asked = (
        (replace(TILED, min_blocks_per_multiprocessor=7), 256, 37888, 6),
        (replace(TILED, min_blocks_per_multiprocessor=9, shared_memory=0), 256, 0, 8),
    )
    for options, threads, shared, most in asked:
        message = (
            f"min_blocks_per_multiprocessor asks for {options.min_blocks_per_multiprocessor} blocks of tc_kernel_0 on "
            f"one of cuda:sm_90, which has room for {most} with {threads} threads and {shared} bytes of "
            "shared memory each; ask for fewer, or make "
            "blocks or tiles smaller"
        )
        with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}$"):
            MM.compile((1024, 1024), (1024, 1024), target="cuda:sm_90", options=options)
    with pytest.raises(
        tc.OptionsError, match=r"^min_blocks_per_multiprocessor cannot be asked for of OpenCL; leave it out$"
    ):
        MM.compile((8, 8), (8, 8), target="opencl", options=tc.GpuOptions(min_blocks_per_multiprocessor=2))


def test_blocks_that_need_too_much_shared_memory_are_refused() -> None:
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(128, 128, 64)), block=(16, 16), shared_memory=200 << 10, stages=2)
    MM.compile((1024, 1024), (1024, 1024), target="cuda:sm_90", options=options)
    with pytest.raises(
        tc.OptionsError,
        match=r"^a block of tc_kernel_0 needs \d{6} bytes of shared memory, cuda:sm_75 has 65536; use smaller tiles, "
        r"or say how much there is with GpuOptions\(shared_memory=\.\.\.\)$",
    ):
        MM.compile((1024, 1024), (1024, 1024), target="cuda:sm_75", options=options)


def test_every_nest_is_a_kernel() -> None:
    two = tc.define("def two(float(N) x) -> (y, s) { y(n) = 2.0 * x(n)  s() +=! x(n) }").two
    options = tc.GpuOptions(tc.ScheduleOptions(tc.Fusion.MINIMAL), split_k_threads=())
    kernel = two.compile((100,), target="cuda:sm_80", options=options)
    assert [grid.name for grid in kernel.resources.grids] == ["tc_kernel_0", "tc_kernel_1", "tc_kernel_2"]


def test_integers_wrap_where_the_language_would_not() -> None:
    text = """
    def wrap(int32(N) a, int32(N) b) -> (s, d, p, n, t) {
      s(i) = a(i) + b(i)
      d(i) = a(i) - b(i)
      p(i) = a(i) * b(i)
      n(i) = -a(i)
      t() +=! a(i)
    }
    """
    source = tc.define(text).wrap.compile((64,), (64,), target="cuda:sm_90").source
    for operator in "+-*":
        assert re.search(rf"\(int\)\(\(unsigned\)t_a\[.*?\] {re.escape(operator)} \(unsigned\)t_b", source)
    assert re.search(r"= \(int\)-\(unsigned\)t_a", source)
    assert "+=" not in "".join(line for line in source.splitlines() if "t_a" in line and "for" not in line)


# Blocks of a multiprocessor, as NVIDIA's occupancy calculator counts them.
@pytest.mark.parametrize(
    ("architecture", "threads", "registers", "shared", "resident"),
    [
        ("sm_90", 1024, 32, 0, 2),
        ("sm_90", 256, 80, 12736, 3),
        ("sm_90", 256, 255, 0, 1),
        ("sm_90", 32, 16, 0, 32),
        ("sm_90", 128, 32, 65536, 3),
        ("sm_80", 128, 32, 48 << 10, 3),
        ("sm_86", 1024, 32, 0, 1),
        ("sm_75", 256, 64, 32 << 10, 2),
        ("sm_75", 33, 200, 0, 4),
    ],
)
def test_occupancy(architecture: str, threads: int, registers: int, shared: int, resident: int) -> None:
    found = MULTIPROCESSORS[architecture]
    assert found.resident(threads, registers, shared) == resident
    warps = -(-threads // 32)
    assert found.occupancy(threads, registers, shared) == resident * warps * 32 / found.threads


def test_the_log_of_the_assembler_is_read() -> None:
    log = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'tc_kernel_1' for 'sm_90'
ptxas info    : Function properties for tc_kernel_1
    64 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 64 bytes cumulative stack size, 1088 bytes smem, 400 bytes cmem[0]
ptxas info    : Compiling entry function 'tc_kernel_0' for 'sm_90'
ptxas info    : Function properties for tc_kernel_0
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 16 registers
"""
    expected = {"tc_kernel_1": KernelUse(255, 64, 8, 12, 1088), "tc_kernel_0": KernelUse(16, 0, 0, 0, 0)}
    assert kernel_uses(log) == expected


def test_what_nvrtc_refuses_is_shown() -> None:
    with pytest.raises(tc.CompileError) as info:
        compile_cuda("no code", "sm_90")
    refused, kept, options, log = str(info.value).splitlines()[:4]
    assert refused == "NVRTC refused the generated source (NVRTC_ERROR_COMPILATION)"
    assert Path(kept.removeprefix("source kept in: ")).read_text() == "no code"
    assert options.startswith("options: --gpu-architecture=sm_90 ")
    assert log.startswith("kernel.cu(1): error")


def test_what_nvrtc_has_kept_is_compiled_anew_for_the_assemblers_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is a driver, NVRTC takes a source it knows from a cache of its own, with an empty log."""
    from cuda.bindings import nvrtc

    given: list[list[bytes]] = []

    def compile_program(program: object, count: int, flags: list[bytes]) -> object:
        given.append(flags)
        return as_it_is(program, count, flags)

    as_it_is = nvrtc.nvrtcCompileProgram
    monkeypatch.setattr(nvrtc, "nvrtcCompileProgram", compile_program)
    monkeypatch.setattr(
        "tc.runtime.cuda.nvrtc.kernel_uses", lambda log: kernel_uses(log) if b"--no-cache" in given[-1] else {}
    )
    binary = compile_cuda('extern "C" __global__ void f(float *a) { a[0] += 1; }', "sm_90")
    assert set(binary.kernels) == {"f"}
    assert len(given) == 2


def test_the_binary_is_waited_for() -> None:
    with compiling_cuda('extern "C" __global__ void nothing() {}', "sm_90") as finished:
        assert set(finished().kernels) == {"nothing"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: MM.compile((4, 4), (4, 4), target="cuda:sm_91"),
            "unknown cuda architecture 'sm_91'; did you mean 'sm_90'?",
        ),
        (
            lambda: MM.compile((4, 4), (4, 4), target="cuda:9.0"),
            f"unknown cuda architecture '9.0'; known: {', '.join(MULTIPROCESSORS)}",
        ),
        (
            lambda: MM.compile((4, 4), (4, 4), target="cuda:sm_90", options=tc.CpuOptions(threads=1)),
            "options must be tc.GpuOptions for target 'cuda:sm_90', got CpuOptions",
        ),
    ],
)
def test_what_no_gpu_is(call: Callable[[], object], message: str) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}"):
        call()


def test_an_architecture_that_nvrtc_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda.bindings import nvrtc

    monkeypatch.setattr(nvrtc, "nvrtcGetSupportedArchs", lambda: (nvrtc.nvrtcResult.NVRTC_SUCCESS, [75, 80]))
    with pytest.raises(
        tc.DeviceError,
        match=r"^NVRTC \d+\.\d+ does not compile for sm_90, only for sm_75, sm_80; install another version of ",
    ):
        check_architecture("sm_90")


without_gpu = pytest.mark.skipif(tc.targets()["cuda"].startswith("available"), reason="there is a GPU")


@without_gpu
def test_kernels_are_compiled_but_not_run() -> None:
    kernel = MM.compile((4, 4), (4, 4), target="cuda:sm_90")
    a = np.ones((4, 4), np.float32)
    with pytest.raises(tc.DeviceError, match=r"^target 'cuda:sm_90' does not run here: .*; use target 'emulator'$"):
        kernel(a, a)
    with pytest.raises(
        tc.DeviceError, match=r"^target 'cuda' is not available: .*; to run here, use .* as in 'cuda:sm_90'$"
    ):
        MM(a, a, target="cuda")


@without_gpu
def test_tuning_for_the_gpu_that_is_here_needs_one() -> None:
    """For one that is named, candidates are ranked by predicted times."""
    with pytest.raises(tc.DeviceError, match=r"^target 'cuda' is not available: .*; to run here, use .*"):
        MM.tune((4, 4), (4, 4), target="cuda", budget="1 trials", progress=False)
