"""Memory, streams and graphs with a driver that is not there; ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cuda.bindings.driver import CUresult

import tc
from tc.base.errors import StickyDeviceError
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.cuda import wait_for_device
from tc.runtime.cuda.deferred_free import DEFERRED_FREE, Borrower
from tc.runtime.frameworks.arrays import describe
from tc.runtime.frameworks.cuda_arrays import cuda_workspace
from tc.runtime.frameworks.device_array import DeviceArray
from tc.runtime.frameworks.dlpack import describe_dlpack
from tc.runtime.views.view import DEFAULT_STREAM, CudaMemory, Framework, Stream
from tests.cuda.simulated_support import (
    GATHER,
    INVALID,
    OUT_OF_MEMORY,
    STEPS,
    Exporter,
    check,
    define,
    floats,
    on,
    streamed,
)
from tests.cuda.simulator import Simulator


def test_errors_that_end_the_process_are_recognized(gpu: Simulator) -> None:
    """Those of which the driver's own descriptions say so, where this version of cuda-bindings has them."""
    surely = {CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, CUresult.CUDA_ERROR_CONTAINED}
    last = {error for error in CUresult if "process must be terminated" in " ".join((error.__doc__ or "").split())}
    assert not last or surely <= last
    for error in last or surely:
        gpu.fail("cuCtxSynchronize", int(error))
        with pytest.raises(StickyDeviceError, match=f"{error.name}: .*start another one"):
            tc.synchronize()


def test_addresses_of_this_machine_are_refused(gpu: Simulator) -> None:
    host, array = np.zeros(3, np.float32), streamed(floats(3), None)
    array.__cuda_array_interface__["data"] = host.ctypes.data, False
    with pytest.raises(
        tc.ArgumentError,
        match=rf"^argument A of mm: its __cuda_array_interface__ names address {host.ctypes.data:#x}, which the CUDA "
        r"driver does not know as memory of a device \(.*CUDA_ERROR_INVALID_VALUE: invalid argument\); copy the array "
        r"to one, for example by tc\.to_device$",
    ):
        describe(array, "argument A of mm")


def waits(gpu: Simulator) -> list[str]:
    return [line for line in gpu.log() if "Synchronize" in line]


class Lender:
    """A framework that takes arrays over for work on a stream, and computes on one that it does not name."""

    def __init__(self, gpu: Simulator) -> None:
        self.gpu = gpu

    def take(self, array: DeviceArray, stream: int | None, borrower: Borrower | None = None) -> None:
        """Takes an array, works on it, and gives it back while the work is not done."""
        exported = array.lend(stream, borrower)
        self.gpu.hold(hold=True)
        del array, exported
        gc.collect()


def test_memory_that_others_work_on_is_freed_after_that_without_a_wait(gpu: Simulator) -> None:
    lender, stream = Lender(gpu), Stream(0x123)
    for memory, taken, frees in (
        (CudaMemory(0, DEFAULT_STREAM), 1, 1),  # in the order of their common stream
        (CudaMemory(0, stream), stream.handle, 1),
        (CudaMemory(0, stream), 1, 0),  # after an event of the default stream
        (CudaMemory(0, stream), None, 0),
    ):
        blocks = gpu.blocks
        lender.take(DeviceArray((9,), tc.ScalarType.INT8, memory), taken)
        assert gpu.blocks == blocks + 1 - frees
        gpu.hold(hold=False)
        DEFERRED_FREE.purge()
        assert gpu.blocks == blocks
    assert waits(gpu) == []


def test_memory_whose_users_are_unknown_is_kept_until_a_synchronization(gpu: Simulator) -> None:
    (other,) = on(0, floats(1))
    gpu.log()
    lender, blocks = Lender(gpu), gpu.blocks
    for stream in (0x777, 2, -1):
        lender.take(DeviceArray((9,), tc.ScalarType.INT8, CudaMemory(0, DEFAULT_STREAM)), stream)
    gpu.hold(hold=False)
    DEFERRED_FREE.purge()
    assert gpu.blocks == blocks + 3
    tc.synchronize(1)
    assert gpu.blocks == blocks + 3
    assert waits(gpu) == ["cuCtxSynchronize"]
    gpu.fail("cuCtxSynchronize", INVALID)
    with pytest.raises(tc.DeviceError):
        tc.synchronize(0)
    DEFERRED_FREE.purge()
    assert gpu.blocks == blocks + 3
    other.numpy()
    assert gpu.blocks == blocks


def test_memory_that_the_driver_does_not_take_back_is_offered_again(gpu: Simulator) -> None:
    blocks, arrays = gpu.blocks, on(0, floats(9), floats(9))
    gpu.fail("cuMemFreeAsync", INVALID, times=2)
    arrays.pop()
    assert gpu.blocks == blocks + 2
    arrays.pop()  # refused is the first one again
    assert gpu.blocks == blocks + 1
    DEFERRED_FREE.purge()
    assert gpu.blocks == blocks


def test_memory_that_was_kept_is_had_back_when_there_is_no_other(gpu: Simulator) -> None:
    lender, blocks, memory = Lender(gpu), gpu.blocks, CudaMemory(0, DEFAULT_STREAM)
    gpu.fail("cuMemAllocFromPoolAsync", OUT_OF_MEMORY)
    with pytest.raises(MemoryError, match="the CUDA device has no 9 bytes left"):
        DeviceArray((9,), tc.ScalarType.INT8, memory)
    assert waits(gpu) == []
    lender.take(DeviceArray((9,), tc.ScalarType.INT8, memory), 0x777)
    gpu.fail("cuMemAllocFromPoolAsync", OUT_OF_MEMORY)
    array = DeviceArray((9,), tc.ScalarType.INT8, memory)
    assert waits(gpu) == ["cuCtxSynchronize"]
    assert gpu.blocks == blocks + 1
    del array


class End:
    """The end of some work, when the test says so."""

    def __init__(self) -> None:
        self.come = False

    def done(self) -> bool:
        return self.come


def test_memory_that_jax_was_lent_is_freed_when_jax_has_done_its_work(gpu: Simulator) -> None:
    lender, blocks, memory = Lender(gpu), gpu.blocks, CudaMemory(0, DEFAULT_STREAM)
    ends: list[End] = []

    def end() -> End:
        ends.append(End())
        return ends[-1]

    for _ in range(3):
        lender.take(DeviceArray((9,), tc.ScalarType.INT8, memory), 0x777, Borrower.JAX)
        DEFERRED_FREE.follow_jax(0, end)
    lender.take(DeviceArray((9,), tc.ScalarType.INT8, memory), 0x777)
    assert (len(ends), gpu.blocks) == (1, blocks + 4)
    ends[0].come = True
    DEFERRED_FREE.purge()
    assert gpu.blocks == blocks + 3
    DEFERRED_FREE.follow_jax(1, end)
    DEFERRED_FREE.follow_jax(0, end)
    assert len(ends) == 2
    ends[1].come = True
    DEFERRED_FREE.purge()
    assert gpu.blocks == blocks + 1  # the user of the last one is unknown
    DEFERRED_FREE.follow_jax(0, end)
    assert len(ends) == 2
    assert waits(gpu) == []


def test_looking_at_the_interface_changes_nothing(gpu: Simulator) -> None:
    array = on(0, floats(9))[0]
    assert hasattr(array, "__cuda_array_interface__")
    blocks = gpu.blocks
    gpu.log()
    del array
    assert gpu.blocks == blocks - 1
    assert gpu.log() == ["cuMemFreeAsync on 0"]


@pytest.mark.parametrize("blocking", [False, True])
def test_arrays_that_go_during_a_capture_are_freed_after_it(gpu: Simulator, blocking: bool) -> None:
    stream = Stream(0x123)
    before = [DeviceArray((9,), tc.ScalarType.INT8, CudaMemory(0, s)) for s in (stream, DEFAULT_STREAM)]
    lent = DeviceArray((9,), tc.ScalarType.INT8, CudaMemory(0, Stream(0x456)))
    exported = lent.__dlpack__(stream=1)
    blocks = gpu.blocks
    gpu.capture(stream.handle, blocking=blocking)
    before.clear()
    del lent, exported
    gc.collect()
    # The default stream can be used, unless it would wait for the one that captures.
    assert gpu.blocks == blocks - (0 if blocking else 2)
    assert gpu.capture(0) == ""
    DEFERRED_FREE.purge()
    assert gpu.blocks == blocks - 3


def test_graphs_have_their_own_temporaries_and_the_results_of_others(gpu: Simulator) -> None:
    definition, in_memory = define(STEPS), tc.GpuOptions(register_accumulators=0, shared_memory=0)
    host = [floats(21, 34), floats(34)]
    kernel = gpu.compile(definition, *host, options=in_memory)
    assert kernel.executable.convention.temporaries
    given = on(0, *host)
    out = definition(*given, options=in_memory)
    blocks = gpu.blocks
    with tc.on_stream(0x123):
        gpu.capture(0x123)
        with pytest.raises(
            tc.ArgumentError,
            match=r"^the stream of this call captures a graph, in which tc has no memory for results that stay; pass "
            r"out= with an array that lives as long as the graph$",
        ):
            definition(*given, options=in_memory)
        gpu.log()
        definition(*given, options=in_memory, out=out)
        lines = [line.split(" ")[0] for line in gpu.log() if "Mem" in line]
    assert lines == ["cuMemAllocFromPoolAsync", "cuMemFreeAsync"]
    assert gpu.capture(0) == ""
    assert gpu.blocks == blocks
    check(definition, given, definition(*given, options=in_memory))


@pytest.mark.parametrize("framework", [Framework.CUPY, Framework.PYCUDA])
def test_temporaries_of_graphs_are_not_from_pools_that_know_no_captures(gpu: Simulator, framework: Framework) -> None:
    """Whose memory is another array's next, while the graph still uses it."""
    memory = CudaMemory(0, Stream(0x123))
    gpu.capture(0x123)
    workspace = cuda_workspace(framework, 512, memory, None)
    assert isinstance(workspace, DeviceArray)
    assert (workspace.nbytes, workspace.memory) == (512, memory)
    del workspace
    assert gpu.capture(0) == ""


def test_captures_may_call_what_was_never_called_before(gpu: Simulator) -> None:
    """Kernels are loaded, memory of this machine for what they find and a pool for temporaries made."""
    pick, steps = define(GATHER), define(STEPS)
    table, rows, host = floats(9, 5), np.array([0, 8, 1], np.int32), [floats(21, 34), floats(34)]
    in_memory = tc.GpuOptions(register_accumulators=0, shared_memory=0)
    gpu.compile(pick, table, rows)
    gpu.compile(steps, *host, options=in_memory)
    given, found = on(0, table, rows), on(0, floats(3, 5))[0]
    others, outs = on(0, *host), tuple(on(0, floats(21, 34), floats(21, 34)))
    cuda_driver()._pools.pop(0)  # type: ignore[attr-defined]
    gpu.log()
    gpu.capture(0x123)
    with tc.on_stream(0x123):
        pick(*given, out=found)
        steps(*others, out=outs, options=in_memory)
    made = [line.split(" ")[0] for line in gpu.log()]
    assert {"cuLibraryLoadData", "cuMemHostAlloc", "cuMemPoolCreate"} <= set(made)
    assert gpu.capture(0) == ""
    np.testing.assert_array_equal(found.numpy(), table[rows])


def test_streams_that_capture_and_others_do_not_mix(gpu: Simulator) -> None:
    definition = define("def f(float(N) A, float(N) B) -> (C) { C(n) = A(n) - B(n) }")
    gpu.compile(definition, floats(9), floats(9))
    (a, out), b = on(0, floats(9), floats(9)), streamed(floats(9), 0x123)
    definition(a, b, out=out)
    gpu.log()
    gpu.capture(0x123)
    with pytest.raises(
        tc.ArgumentError,
        match=r"^f: some arrays are ready on a stream that captures a graph, and others on another one, which would "
        r"end the capture; call it in `with tc\.on_stream\(\.\.\.\)` of the stream that captures$",
    ):
        definition(a, b, out=out)
    assert gpu.log() == []
    with tc.on_stream(0x123):
        definition(a, b, out=out)
    assert gpu.capture(0) == ""


def test_who_exports_is_told_the_stream_that_works_on_it(gpu: Simulator) -> None:
    definition = define("def f(float(N) A) -> (B) { B(n) = A(n) + 2.0 }")
    gpu.compile(definition, floats(9))
    (out,) = on(0, floats(9))
    exporter = Exporter(on(0, floats(9))[0])
    definition(exporter, out=out)
    for stream in (2, 0x123):  # the first one is the default stream of a thread
        with tc.on_stream(stream):
            definition(exporter, out=out)
    with tc.on_stream(1):
        definition(exporter, out=out)
    gpu.capture(0x123)
    with tc.on_stream(0x123):
        definition(exporter, out=out)
        describe_dlpack(exporter, "an array of JAX's", Framework.JAX)
    assert gpu.capture(0) == ""
    assert exporter.streams == [1, 2, 0x123, 1, -1, None]


def test_the_chosen_stream_waits_for_what_comes_through_dlpack(gpu: Simulator) -> None:
    definition = define("def f(float(N) A) -> (B) { B(n) = A(n) + 3.0 }")
    gpu.compile(definition, floats(9))
    (given, out) = on(0, floats(9), floats(9))

    class Forwarding(Exporter):
        def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> object:
            return self.base.__dlpack__(stream=stream, max_version=max_version)

    with tc.on_stream(0x123):
        definition(given, out=out)
        gpu.log()
        definition(Forwarding(given), out=out)
    lines = [line.partition(",")[0] for line in gpu.log()]
    assert lines[1:4] == ["cuEventRecord on 0", "cuStreamWaitEvent on 123", "cuLaunchKernel tc_kernel_0 on 0:123"]


def test_what_a_graph_waits_for_is_not_said_by_exports(gpu: Simulator) -> None:
    array = DeviceArray((9,), tc.ScalarType.INT8, CudaMemory(0, Stream(0x456)))
    for captured in (0x123, 0x456):
        gpu.capture(captured)
        gpu.log()
        array.__dlpack__(stream=0x123)
        assert gpu.log() == []
        assert gpu.capture(0) == ""


def test_threads_may_give_memory_back_at_once(gpu: Simulator) -> None:
    blocks, barrier = gpu.blocks, threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        for turn in range(40):
            array = DeviceArray((9,), tc.ScalarType.INT8, CudaMemory(0, Stream(0x100 + number)))
            array.lend((1, 0x777, 0x888)[turn % 3], Borrower.JAX if turn % 3 == 1 else None)
            cycle: list[object] = [array]
            cycle.append(cycle)
            del array, cycle
            match turn % 10:
                case 3:
                    gc.collect(1)
                case 5:
                    DEFERRED_FREE.follow_jax(0, End)
                case 7:
                    wait_for_device(0)

    with ThreadPoolExecutor(8) as executor:
        list(executor.map(work, range(8)))
    gc.collect()
    tc.synchronize()
    assert gpu.blocks == blocks
