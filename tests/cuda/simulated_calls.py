"""Calls on CUDA with a driver that is not there (``simulator.py``); ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tc
from tc.runtime.frameworks.arrays import describe
from tc.runtime.frameworks.cuda_interface import describe_cuda_interface
from tc.runtime.frameworks.device_array import DeviceArray
from tc.runtime.frameworks.dlpack import describe_dlpack
from tc.runtime.views.view import DEFAULT_STREAM, CudaMemory, Stream
from tests.cuda.simulated_support import GATHER, MM, STEPS, Interface, check, define, floats, on, random, results
from tests.cuda.simulator import Simulator
from tests.turns import one_in


@one_in(2)
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (MM, (floats(33, 17), floats(17, 65))),
        (STEPS, (floats(21, 34), floats(34))),
        (GATHER, (floats(9, 5), random.integers(0, 9, 33).astype(np.int32))),
        ("def f(half(N,K) A) -> (B) { B(n) +=! A(n,k) }", (floats(7, 300).astype(np.float16),)),
        ("def f(bfloat16(N) A) -> (B) { B(n) = A(n) * A(n) }", (floats(70).astype(ml_dtypes.bfloat16),)),
        (
            "def f(bool(N) A, int8(N) B) -> (C) { C(n) = A(n) ? B(n) : -B(n) }",
            (floats(9) > 0, np.arange(9, dtype="i1")),
        ),
        ("def f(float(N) A) -> (B) { B(n) = A(n) + 1.0 }", (floats(0),)),
    ],
)
def test_results_are_those_of_the_oracle(gpu: Simulator, text: str, arguments: tuple[np.ndarray, ...]) -> None:
    definition = define(text)
    gpu.compile(definition, *arguments)
    given = on(0, *arguments)
    found = definition(*given)
    check(definition, given, found)
    # The second one is a warm call.
    check(definition, given, definition(*given))


def test_scalars_arrive_in_their_types(gpu: Simulator) -> None:
    types = [type for type in tc.ScalarType if type is not tc.ScalarType.BOOL]
    for turn, order in enumerate((types, types[::-1])):
        parameters = ", ".join(f"{type} s{n}" for n, type in enumerate(order))
        parts = " + ".join(f"double(s{n}) * {10**n}" for n in range(len(order)))
        definition = define(f"def f(double(N) A, bool b, {parameters}) -> (B) {{ B(n) = (b ? A(n) : 0.0) + {parts} }}")
        values = [n + 1 for n in range(len(order))]
        array = np.arange(5.0)
        gpu.compile(definition, array, bool(turn), *values)
        given = on(0, array)
        check(definition, [*given, bool(turn), *values], definition(*given, bool(turn), *values))


def test_strides_of_both_signs_are_followed(gpu: Simulator) -> None:
    definition = define(MM)
    a, b = floats(40, 40), floats(40, 40)
    window, other = a[30:2:-2, 3:20], b.T[5:22, 1:30:3]
    kernel = gpu.compile(definition, window, other)
    bases = on(0, a, b)
    given: list[Any] = [Interface(bases[0], window, a), Interface(bases[1], other, b)]
    check(definition, given, kernel(*given))
    assert np.array_equal(definition.reference(*given), definition.reference(window, other))


def test_outputs_are_written_where_they_are(gpu: Simulator) -> None:
    definition = define("def f(float(N) A) -> (B) { B(n) += A(n) }")
    a, b = floats(33), floats(33)
    given, out = on(0, a, b)
    gpu.compile(definition, a)
    found = definition(given, out=out)
    assert found is out
    assert np.array_equal(out.numpy(), a + b)
    with pytest.raises(tc.ArgumentError, match=r"output B of f: expected shape \(33,\), got \(32,\)"):
        definition(given, out=on(0, floats(32))[0])


def test_one_kernel_serves_every_value_of_an_open_size(gpu: Simulator) -> None:
    definition = define(MM)
    gpu.compile(definition, (tc.dynamic(70), 9), (9, 33))
    b = floats(9, 33)
    for size in (1, 33, 70):
        given = on(0, floats(size, 9), b)
        check(definition, given, definition(*given))
    assert sum("cuLibraryLoadData" in line for line in gpu.log()) == 1


def test_arrays_choose_the_target(gpu: Simulator) -> None:
    definition = define(MM)
    host = [floats(4, 4), floats(4, 4)]
    assert str(definition.compile(*on(0, *host)).target) == "cuda:sm_90a"
    assert str(definition.compile(*on(1, *host)).target) == "cuda:sm_80"
    assert definition.compile(*host).target != definition.compile(*on(0, *host)).target
    assert tc.targets()["cuda"] == "available: cuda:sm_90a (Simulated 0, by cuda-bindings)"
    for device in (0, 1):
        given = on(device, *host)
        gpu.compile(definition, *given, target=str(definition.compile(*given).target))
        found = definition(*given)
        assert isinstance(found, DeviceArray)
        assert found.memory.device == device


def test_a_definition_without_arrays_runs_on_the_current_device(gpu: Simulator) -> None:
    definition = define("def f(float s) -> (B) { B(n) = s where n in 0:9 }")
    gpu.compile(definition, 3.0)
    found = definition(3.0, target="cuda")
    assert np.array_equal(results(found)[0], np.full(9, 3, np.float32))
    assert isinstance(found, DeviceArray)
    assert found.memory.stream == DEFAULT_STREAM


def test_large_shared_memory_is_asked_for(gpu: Simulator) -> None:
    definition = define(MM)
    shape = (64, 256), (256, 64)
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(64, 64, 128)), block=(16, 16), shared_memory=100 << 10)
    kernel = gpu.compile(definition, *shape, options=options)
    (grid,) = kernel.executable.convention.grids
    assert grid.shared_bytes > 48 << 10
    assert "extern __shared__ __align__(64) char shared[];" in kernel.source
    given = on(0, *(floats(*extents) for extents in shape))
    for _ in range(2):
        check(definition, given, kernel(*given))
    lines = gpu.log()
    assert sum(line == f"cuKernelSetAttribute tc_kernel_0 8={grid.shared_bytes} on 0" for line in lines) == 1
    assert sum(line.endswith(f"shared {grid.shared_bytes}") for line in lines) == 2


def test_device_arrays_go_anywhere(gpu: Simulator) -> None:
    for type in tc.ScalarType:
        array = DeviceArray((7, 2), type, CudaMemory(0, Stream(0x123)))
        for view in (describe_dlpack(array, "an array"), describe_cuda_interface(array, "an array")):
            assert (view.address, view.shape, view.strides) == (array.address, (7, 2), (2, 1))
            assert view.type is type
            assert view.memory is not None
            assert view.memory.device == 0
        assert describe(array, "an array").memory == array.memory
    array = on(0, floats(3, 4))[0]
    assert repr(array) == "<DeviceArray float32[3, 4] on cuda:0>"
    gpu.log()
    exported = array.__dlpack__(stream=0x777)
    assert [line.split(",")[0] for line in gpu.log()] == [
        "cuEventCreate 2",
        "cuEventRecord on 0",
        "cuStreamWaitEvent on 777",
    ]
    array.__dlpack__(stream=-1)
    array.__dlpack__(stream=1)
    assert gpu.log() == []
    with pytest.raises(BufferError, match="exported where it is"):
        array.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="exported where it is"):
        array.__dlpack__(dl_device=(1, 0))
    held = weakref.ref(array)
    del array
    gc.collect()
    assert held() is not None
    del exported
    gc.collect()
    assert held() is None


def test_threads_without_a_context_fail_no_call_of_the_driver(gpu: Simulator) -> None:
    """Tools such as compute-sanitizer report every call that fails, expected or not."""
    definition, host = define(MM), [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)
    gpu.log()

    def call() -> None:
        check(definition, host, definition(*on(0, *host)))
        tc.synchronize()

    with ThreadPoolExecutor(1) as executor:
        executor.submit(call).result()
    calls = gpu.log()
    assert any("cuLaunchKernel" in line for line in calls)
    assert not [line for line in calls if "fails" in line]


def test_threads_may_call_at_once(gpu: Simulator) -> None:
    definition = define(STEPS)
    a, s = floats(21, 34), floats(34)
    gpu.compile(definition, a, s)
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        given = on(0, a + number, s)
        barrier.wait()
        for _, found in itertools.product(range(5), (definition(*given),)):
            check(definition, given, found)

    with ThreadPoolExecutor(8) as executor:
        list(executor.map(work, range(8)))
    assert sum("cuLibraryLoadData" in line for line in gpu.log()) == 1
