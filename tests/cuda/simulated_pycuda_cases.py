"""Calls on CUDA through PyCUDA, with a driver that is not there; ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tc
from tc.runtime.chosen_driver import cuda_driver
from tc.runtime.device_array import DeviceArray
from tests.cuda.simulated_cases import GATHER, ILLEGAL_ADDRESS, INVALID, MM, OUT_OF_MEMORY, STEPS, define, floats, on
from tests.cuda.simulator import Simulator, simulator


@pytest.fixture
def gpu() -> Iterator[Simulator]:
    """The simulator, and a context of PyCUDA's on its first device."""
    found = simulator()
    # The simulator has not all functions that the package is linked against.
    sys.setdlopenflags(os.RTLD_LAZY)
    import pycuda.driver as cuda

    cuda.init()
    context = cuda.Device(0).retain_primary_context()
    context.push()
    found.log()
    yield found
    found.hold(hold=False)
    cuda.Context.pop()


def arrays(*given: np.ndarray) -> list[Any]:
    import pycuda.gpuarray

    return [pycuda.gpuarray.to_gpu(array) for array in given]


def check(definition: tc.Comprehension, given: list[np.ndarray], found: object) -> None:
    values = found if isinstance(found, tuple) else (found,)
    expected = definition.reference(*given)
    for value, right in zip(values, expected if isinstance(expected, tuple) else (expected,), strict=True):
        copied = value.numpy() if isinstance(value, DeviceArray) else value.get()
        assert np.allclose(copied, right, rtol=1e-5, atol=1e-5)


def test_processes_that_use_pycuda_are_served_by_it(gpu: Simulator) -> None:
    assert cuda_driver().name == "pycuda"
    assert tc.targets()["cuda"] == "available: cuda:sm_90 (Simulated 0, by pycuda)"
    assert cuda_driver().version() == "13.0"


def test_gpuarrays_come_in_and_go_out(gpu: Simulator) -> None:
    import pycuda.driver as cuda
    import pycuda.gpuarray

    in_memory = tc.GpuOptions(private=0, shared=0)
    for text, host in ((MM, [floats(33, 17), floats(17, 65)]), (STEPS, [floats(21, 34), floats(34)])):
        definition = define(text)
        kernel = gpu.compile(definition, *host, options=in_memory)
        given = arrays(*host)
        sizes: list[int] = []

        def allocate(size: int, sizes: list[int] = sizes) -> object:
            sizes.append(size)
            return cuda.mem_alloc(size)

        given[0].allocator = allocate
        for _ in range(2):
            found = definition(*given, options=in_memory)
            check(definition, host, found)
            values = found if isinstance(found, tuple) else (found,)
            assert all(isinstance(value, pycuda.gpuarray.GPUArray) for value in values)
        temporaries = len(kernel.executable.convention.temporaries)
        assert temporaries == (text is STEPS)
        assert len(sizes) == 2 * (len(values) + temporaries)
        out = pycuda.gpuarray.empty_like(values[0])
        definition(*given, out=(out, *values[1:]), options=in_memory)
        check(definition, host, (out, *values[1:]))


def test_windows_of_gpuarrays_are_followed(gpu: Simulator) -> None:
    definition = define(MM)
    a, b = floats(40, 40), floats(40, 40)
    kernel = gpu.compile(definition, a[3:30, 4:], b[4:, 1:22])
    first, second = arrays(a, b)
    check(definition, [a[3:30, 4:], b[4:, 1:22]], kernel(first[3:30, 4:], second[4:, 1:22]))


def test_streams_of_pycuda_are_taken(gpu: Simulator) -> None:
    import pycuda.driver as cuda

    definition = define(MM)
    host = [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)
    given = arrays(*host)
    stream = cuda.Stream()
    gpu.log()
    with tc.on_stream(stream):
        check(definition, host, definition(*given))
    assert any(line.startswith(f"cuLaunchKernel tc_kernel_0 on 0:{stream.handle:x},") for line in gpu.log())
    with (
        tc.on_stream(0xBAD),
        pytest.raises(
            tc.DeviceError,
            match=r"^PyCUDA cannot launch on stream 0xbad, which another framework made; use the default stream, or "
            r"set TC_CUDA_RUNTIME=cuda-bindings$",
        ),
    ):
        definition(*given)
    definition(*given)
    assert not any("Synchronize" in line for line in gpu.log())


def test_bad_indices_are_reported(gpu: Simulator) -> None:
    definition = define(GATHER)
    table, indices = floats(9, 5), np.full(33, 9, np.int32)
    gpu.compile(definition, table, indices)
    definition(*arrays(table, indices))
    with pytest.raises(tc.ArgumentError, match="pick: an index into dimension 0 of T is outside of 0:9"):
        tc.synchronize()


def test_what_pycuda_refuses_is_told(gpu: Simulator) -> None:
    definition = define(MM)
    host = [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)
    given = arrays(*host)
    gpu.fail("cuModuleLoadDataEx", INVALID)
    with pytest.raises(tc.DeviceError, match=r"^the CUDA driver failed: .*invalid argument"):
        definition(*given)
    gpu.fail("cuLaunchKernel", INVALID)
    with pytest.raises(
        tc.DeviceError, match=r"^CUDA refused to run tc_kernel_0 \(grid \d+x\d+x1, .*invalid argument"
    ) as caught:
        definition(*given)
    assert not isinstance(caught.value, tc.StickyDeviceError)
    gpu.fail("cuCtxSynchronize", ILLEGAL_ADDRESS)
    with pytest.raises(tc.DeviceError, match="an illegal memory access was encountered"):
        tc.synchronize()
    given_own = on(0, *host)
    gpu.fail("cuMemAlloc_v2", OUT_OF_MEMORY, times=2)  # PyCUDA collects garbage, and tries again
    with pytest.raises(MemoryError, match=r"^the CUDA device has not enough memory left"):
        definition(*given_own)
    check(definition, host, definition(*given))


def test_arrays_of_ours_run_by_pycuda(gpu: Simulator) -> None:
    definition = define(STEPS)
    host = [floats(21, 34), floats(34)]
    gpu.compile(definition, *host)
    check(definition, host, definition(*on(0, *host)))
    with cuda_driver().on(1):
        assert cuda_driver().current_device() == 1
    assert cuda_driver().current_device() == 0


def test_large_shared_memory_is_asked_for(gpu: Simulator) -> None:
    definition = define(MM)
    host = [floats(64, 256), floats(256, 64)]
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(64, 64, 128)), block=(16, 16), shared=100 << 10)
    kernel = gpu.compile(definition, *host, options=options)
    (grid,) = kernel.executable.convention.grids
    check(definition, host, kernel(*arrays(*host)))
    assert f"cuFuncSetAttribute tc_kernel_0 8={grid.shared_bytes}" in gpu.log()


def test_other_threads_find_the_device(gpu: Simulator) -> None:
    definition = define(MM)
    host = [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)

    def work(_: int) -> None:
        check(definition, host, definition(*on(0, *host)))

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(work, range(8)))


def test_memory_that_another_thread_gives_back_is_freed_by_its_own(gpu: Simulator) -> None:
    kept = on(0, floats(100))
    blocks = gpu.blocks
    with ThreadPoolExecutor(1) as executor:
        executor.submit(kept.clear).result()
    assert gpu.blocks == blocks
    (other,) = on(0, floats(7))
    assert gpu.blocks == blocks
    del other
    assert gpu.blocks == blocks - 1


def test_events_are_timed(gpu: Simulator) -> None:
    import pycuda.driver as cuda

    from tc.runtime.view import DEFAULT_STREAM, Stream

    driver = cuda_driver()
    gpu.hold(hold=True)
    first, last = (driver.record(DEFAULT_STREAM, timed=True) for _ in range(2))
    assert not last.done()
    stream = cuda.Stream()
    driver.wait(Stream(stream.handle, stream), last)
    driver.wait(DEFAULT_STREAM, last)
    assert last.done()
    assert last.seconds_since(first) == 2.5e-3
