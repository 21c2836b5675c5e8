"""Calls on CUDA through PyCUDA, with a driver that is not there; ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tc
import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.runtime.cuda import libcuda
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.cuda import IN_FLIGHT
from tc.runtime.views.view import DEFAULT_STREAM, Stream
from tests.cuda.pycuda_callers import arrays, check, cleanly, current
from tests.cuda.simulated_support import (
    GATHER,
    ILLEGAL_ADDRESS,
    INVALID,
    MM,
    OUT_OF_MEMORY,
    STEPS,
    Interface,
    define,
    floats,
    on,
    refused,
    streamed,
    tells_what_is_refused,
)
from tests.cuda.simulator import Simulator
from tests.short_way import only_the_short_way

IN_MEMORY = tc.GpuOptions(register_accumulators=0, shared_memory=0)  # what temporaries need


@pytest.fixture
def gpu(capfd: pytest.CaptureFixture[str]) -> Iterator[Simulator]:
    with cleanly(capfd) as found:
        yield found


def test_processes_that_use_pycuda_are_served_by_it(gpu: Simulator) -> None:
    assert cuda_driver().name == "pycuda"
    assert tc.targets()["cuda"] == "available: cuda:sm_90a (Simulated 0, by pycuda)"
    assert cuda_driver().version() == "13.0"


def test_gpuarrays_come_in_and_go_out(gpu: Simulator) -> None:
    import pycuda.driver as cuda
    import pycuda.gpuarray

    for text, host in ((MM, [floats(33, 17), floats(17, 65)]), (STEPS, [floats(21, 34), floats(34)])):
        definition = define(text)
        kernel = gpu.compile(definition, *host, options=IN_MEMORY)
        given = arrays(*host)
        sizes: list[int] = []

        def allocate(size: int, sizes: list[int] = sizes) -> object:
            sizes.append(size)
            return cuda.mem_alloc(size)

        given[0].allocator = allocate
        for _ in range(2):
            found = definition(*given, options=IN_MEMORY)
            check(definition, host, found)
            values = found if isinstance(found, tuple) else (found,)
            assert all(isinstance(value, pycuda.gpuarray.GPUArray) for value in values)
        temporaries = len(kernel.executable.convention.temporaries)
        assert temporaries == (text is STEPS)
        assert len(sizes) == 2 * (len(values) + temporaries)
        out = pycuda.gpuarray.empty_like(values[0])
        definition(*given, out=(out, *values[1:]), options=IN_MEMORY)
        check(definition, host, (out, *values[1:]))


def test_windows_of_gpuarrays_are_followed(gpu: Simulator) -> None:
    definition = define(MM)
    a, b = floats(40, 40), floats(40, 40)
    kernel = gpu.compile(definition, a[3:30, 4:], b[4:, 1:22])
    first, second = arrays(a, b)
    check(definition, [a[3:30, 4:], b[4:, 1:22]], kernel(first[3:30, 4:], second[4:, 1:22]))


def test_streams_of_pycuda_and_of_others_are_taken(gpu: Simulator) -> None:
    import pycuda.driver as cuda

    definition = define(MM)
    host = [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)
    given = arrays(*host)
    own = cuda.Stream()
    gpu.log()
    for stream, handle in ((own, own.handle), (0xABC, 0xABC)):
        with tc.on_stream(stream):
            check(definition, host, definition(*given))
        lines = gpu.log()
        assert any(line.startswith(f"cuLaunchKernel tc_kernel_0 on 0:{handle:x},") for line in lines)
    definition(*given)
    assert not any("Synchronize" in line or "Event" in line for line in gpu.log())
    # An array of another framework, on the stream of which PyCUDA knows nothing.
    mixed = given[0], streamed(host[1], 0xABC)
    gpu.log()
    check(definition, host, definition(*mixed))
    lines = [line.partition(",")[0] for line in gpu.log() if "Mem" not in line]
    assert lines == [
        "cuEventCreate 2",
        "cuEventRecord on abc",
        "cuStreamWaitEvent on 0",
        "cuLaunchKernel tc_kernel_0 on 0:0",
        "cuEventCreate 2",
        "cuEventRecord on 0",
        "cuStreamWaitEvent on abc",
    ]


def test_what_a_graph_waits_for_is_left_to_its_owner(gpu: Simulator) -> None:
    definition = define("def f(float(N) A, float(N) B) -> (C) { C(n) = A(n) + B(n) }")
    host = [floats(9), floats(9)]
    gpu.compile(definition, *host)
    given = *arrays(host[0]), streamed(host[1], 0xABC)
    gpu.hold(hold=True)
    definition(*given)
    driver = cuda_driver()
    address, word = driver.allocate(9, DEFAULT_STREAM), driver.shared_word()
    assert not driver.captures(Stream(0xABC))
    gpu.capture(0xABC)
    assert driver.captures(Stream(0xABC))
    assert not driver.captures(DEFAULT_STREAM)
    # None of these disturbs a capture.
    del word
    IN_FLIGHT.purge()
    driver.free(address, DEFAULT_STREAM)
    gpu.log()
    with tc.on_stream(0xABC):
        check(definition, host, definition(*given))
    assert gpu.capture(0) == ""
    assert not any("Event" in line for line in gpu.log())
    gpu.capture(0xABC, blocking=True)
    assert driver.captures(DEFAULT_STREAM)
    gpu.capture(0)


def test_warm_calls_take_and_give_back_memory_in_the_order_of_their_stream(gpu: Simulator) -> None:
    definition = define(STEPS)
    host = [floats(21, 34), floats(34)]
    kernel = gpu.compile(definition, *host, options=IN_MEMORY)
    assert len(kernel.executable.convention.temporaries) == 1
    given, out = arrays(*host), tuple(arrays(host[0], host[0]))
    definition(*given, out=out, options=IN_MEMORY)
    gpu.log()
    definition(*given, out=out, options=IN_MEMORY)
    lines = [line for line in gpu.log() if "Launch" not in line]
    assert [line.partition(" ")[0] for line in lines] == ["cuMemAllocFromPoolAsync", "cuMemFreeAsync"]
    check(definition, host, out)


def test_devices_without_pools_have_memory(gpu: Simulator) -> None:
    from tc.runtime.cuda.pycuda_driver import PycudaDriver

    gpu.pools(have=False)
    driver = PycudaDriver()
    address = driver.allocate(100, DEFAULT_STREAM)
    gpu.pools(have=True)
    assert driver.device_of(address) == 0
    driver.free(address, DEFAULT_STREAM)
    assert gpu.log() == ["cuMemAlloc 100", "cuMemFree"]


def test_arrays_lie_on_the_device_that_their_address_belongs_to(gpu: Simulator) -> None:
    definition = define(MM)
    host = [floats(4, 4), floats(4, 4)]
    kernel = gpu.compile(definition, *host)
    here = arrays(*host)
    with current(1):
        there = arrays(*host)
    interface = Interface(on(1, host[1])[0], host[1], host[1])
    for other in (there[1], interface):
        refused(
            functools.partial(definition, here[0], other),
            "argument B of mm: the array is on cuda:1, argument A of mm on cuda:0; copy them to one device",
        )
    refused(
        functools.partial(kernel, *there),
        "a kernel for sm_90a does not run on cuda:1, Simulated 1, compute capability 8.0; compile it for 'cuda:sm_80'",
    )
    gpu.compile(definition, *host, target=str(definition.compile(*there).target))
    gpu.log()
    found = definition(*there)
    assert any(line.startswith("cuLaunchKernel tc_kernel_0 on 1:0,") for line in gpu.log())
    assert cuda_driver().current_device() == 0
    with current(1):
        check(definition, host, found)
        del found, there, other


def test_repeated_calls_take_the_short_way(gpu: Simulator) -> None:
    import pycuda.driver as cuda

    definition, host = define(STEPS), [floats(21, 34), floats(34)]
    kernel = gpu.compile(definition, *host, options=tc.GpuOptions(register_accumulators=0, shared_memory=0))
    kernel(*arrays(*host))
    given, sizes = arrays(*host), []
    out = arrays(host[0], host[0])
    kernel(*given, out=(None, out[1]))
    kernel(*given, out=tuple(out))

    def allocate(size: int) -> object:
        sizes.append(size)
        return cuda.mem_alloc(size)

    # The allocator is that of the array which comes now, and not of the one that came first.
    given[0].allocator = allocate
    stream = cuda.Stream()
    with only_the_short_way():
        check(definition, host, kernel(*given))
        assert len(sizes) == 3
        found: Any = kernel(*given, out=(None, out[1]))
        assert len(sizes) == 5
        assert found[1] is out[1]
        check(definition, host, found)
        gpu.log()
        with tc.on_stream(stream):
            kernel(*given, out=tuple(out))
    lines = [line for line in gpu.log() if line.startswith("cuLaunchKernel")]
    assert lines
    assert all(f" on 0:{stream.handle:x}," in line for line in lines)
    check(definition, host, tuple(out))


def test_other_gpuarrays_are_noticed(gpu: Simulator) -> None:
    definition, host = define(STEPS), [floats(21, 34), floats(34)]
    gpu.compile(definition, *host)
    given, out = arrays(*host), tuple(arrays(host[0], host[0]))
    definition(*given, out=out)
    with pytest.raises(tc.ArgumentError, match="the outputs B and C share memory"):
        definition(*given, out=(out[0], out[0]))
    with pytest.raises(tc.ArgumentError, match="argument A of steps: expected element type float32, got int32"):
        definition(*arrays(host[0].astype(np.int32)), given[1], out=out)
    (empty,) = arrays(floats(0, 34))
    with pytest.raises(tc.TCError):
        definition(empty, given[1], out=out)
    definition, host = define(MM), [floats(9, 9), floats(9, 9)]
    gpu.compile(definition, *host)
    gpu.compile(definition, host[0].T, host[1])
    left, right = arrays(*host)
    definition(left, right)
    check(definition, [host[0].T, host[1]], definition(left.transpose(), right))


def test_bad_indices_are_reported(gpu: Simulator) -> None:
    definition = define(GATHER)
    table, indices = floats(9, 5), np.full(33, 9, np.int32)
    gpu.compile(definition, table, indices)
    definition(*arrays(table, indices))
    with pytest.raises(tc.ArgumentError, match="pick: an index into dimension 0 of T is outside of 0:9"):
        tc.synchronize()


def test_what_the_driver_refuses_is_told(gpu: Simulator) -> None:
    definition = define(MM)
    host = [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)
    given = arrays(*host)
    tells_what_is_refused(gpu, lambda: definition(*given))
    gpu.fail("cuCtxSynchronize", 999)
    with pytest.raises(tc.DeviceError, match=r"failed: error 999: an error that the driver does not explain"):
        tc.synchronize()
    check(definition, host, definition(*given))


def test_a_broken_device_is_recognized(gpu: Simulator) -> None:
    definition = define(MM)
    host = [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)
    given = arrays(*host)
    broken = r"an illegal memory access was encountered; the device takes no more work from this process, start another"
    gpu.fail("cuLaunchKernel", ILLEGAL_ADDRESS)
    gpu.log()
    with pytest.raises(tc.StickyDeviceError, match=rf"^CUDA refused to run tc_kernel_0 \(grid .*{broken}"):
        definition(*given)
    assert not any("Synchronize" in line for line in gpu.log())
    gpu.fail("cuCtxSynchronize", ILLEGAL_ADDRESS)
    with pytest.raises(tc.StickyDeviceError, match=rf"^the CUDA driver failed: CUDA_ERROR_ILLEGAL_ADDRESS: {broken}"):
        tc.synchronize()


def test_memory_that_there_is_not_is_told(gpu: Simulator) -> None:
    definition = define(MM)
    host = [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)
    given, own = arrays(*host), on(0, *host)
    gpu.fail("cuMemAllocFromPoolAsync", OUT_OF_MEMORY)
    with pytest.raises(MemoryError, match=r"^the CUDA device has no 96 bytes left$"):
        definition(*own)
    gpu.fail("cuMemAlloc_v2", OUT_OF_MEMORY, times=2)  # PyCUDA collects garbage, and tries again
    with pytest.raises(MemoryError, match=r"^the CUDA device has not enough memory left \(.*out of memory\)$"):
        definition(*given)
    gpu.fail("cuMemAlloc_v2", INVALID)
    with pytest.raises(tc.DeviceError, match=r"^PyCUDA cannot allocate an array: .*invalid argument$"):
        definition(*given)


def test_drivers_that_are_too_old_are_told(gpu: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libcuda, "_PARAMETERS", {"cuLaterThanThis": ()})
    refused(libcuda.Libcuda, "the CUDA driver is too old: it has no cuLaterThanThis; update it to CUDA 12 or newer")


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
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(64, 64, 128)), block=(16, 16), shared_memory=100 << 10)
    kernel = gpu.compile(definition, *host, options=options)
    (grid,) = kernel.executable.convention.grids
    given = arrays(*host)
    for _ in range(2):
        check(definition, host, kernel(*given))
    lines = gpu.log()
    assert sum(line == f"cuKernelSetAttribute tc_kernel_0 8={grid.shared_bytes} on 0" for line in lines) == 1
    gpu.fail("cuKernelSetAttribute", INVALID)
    other = gpu.compile(define(MM), *host, options=options)
    with pytest.raises(tc.DeviceError, match=r"^CUDA refused to run tc_kernel_0 .*: CUDA_ERROR_INVALID_VALUE"):
        other(*given)


def test_events_are_timed(gpu: Simulator) -> None:
    import pycuda.driver as cuda

    driver = cuda_driver()
    gpu.hold(hold=True)
    first, last = (driver.record(DEFAULT_STREAM, timed=True) for _ in range(2))
    assert not last.done()
    stream = cuda.Stream()
    gpu.log()
    driver.wait(Stream(stream.handle, stream), last)
    driver.wait(DEFAULT_STREAM, last)
    assert gpu.log() == [f"cuStreamWaitEvent on {stream.handle:x}", "cuStreamWaitEvent on 0"]
    driver.synchronize(DEFAULT_STREAM)
    assert gpu.log() == ["cuStreamSynchronize 0"]
    assert last.done()
    assert last.seconds_since(first) == 2.5e-3


def test_models_start_one_kernel_after_the_other(gpu: Simulator) -> None:
    """Contexts of PyCUDA may end before a graph of them."""
    with pytest.raises(
        tc.DeviceError, match=r"^contexts of PyCUDA may end before their graphs; use cuda-bindings for gr"
    ):
        cuda_driver().graph(())
    softmax = "def softmax(float(M,N) A) -> (P) { S(m) +=! exp(A(m,n)) P(m,n) = exp(A(m,n)) / S(m) }"
    builder = Builder("head")
    x = builder.input("x", ScalarType.FLOAT32, (7, 20))
    made = builder.call("def twice(float(M,N) A) -> (B) { B(m,n) = 2 * A(m,n) }", x)
    graph = builder.finish([*builder.call(softmax, *made), x])
    model, host = tc.graph.Model.of(graph, tc.graph.Settings(rules=(), fuse=False, target="cuda")), floats(7, 20)
    gpu.compile_model(model)
    expected = np.exp(2 * host) / np.exp(2 * host).sum(1, keepdims=True)
    for given in (arrays(host), [host]):
        for _ in range(2):
            found: Any = model(*given)
            assert [type(result) for result in found] == [type(given[0])] * 2
            values, same = (result if isinstance(result, np.ndarray) else result.get() for result in found)
            np.testing.assert_allclose(values, expected, rtol=1e-5)
            np.testing.assert_array_equal(same, host)
