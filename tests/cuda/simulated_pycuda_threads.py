"""Threads and contexts of PyCUDA, with a driver that is not there; ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tc
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.cuda import IN_FLIGHT
from tc.runtime.views.view import DEFAULT_STREAM
from tests.cuda.pycuda_callers import arrays, check, cleanly, context, current
from tests.cuda.simulated_support import GATHER, ILLEGAL_ADDRESS, INVALID, MM, OUT_OF_MEMORY, STEPS, define, floats, on
from tests.cuda.simulator import Simulator

CONTEXT_IS_DESTROYED = 709
IN_MEMORY = tc.GpuOptions(register_accumulators=0, shared_memory=0)  # what temporaries need


@pytest.fixture
def gpu(capfd: pytest.CaptureFixture[str]) -> Iterator[Simulator]:
    with cleanly(capfd) as found:
        yield found


def test_other_threads_find_the_device(gpu: Simulator) -> None:
    definition = define(MM)
    host = [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)

    given = arrays(*host)

    def work(number: int) -> None:
        with current(0):
            check(definition, host, definition(*(given if number % 2 else on(0, *host))))

    def work_without_a_context(_: int) -> tuple[object, object]:
        return definition(*on(0, *host)), definition(*given)

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(work, range(32)))
        for found in executor.map(work_without_a_context, range(16)):
            check(definition, host, found[0])
            check(definition, host, found[1])


def test_memory_of_ours_goes_in_whichever_thread(gpu: Simulator) -> None:
    kept = on(0, floats(100))
    blocks = gpu.blocks
    with ThreadPoolExecutor(1) as executor:
        executor.submit(kept.clear).result()
    assert gpu.blocks == blocks - 1


def in_thread(work: Callable[[], Any]) -> Any:
    """What a thread that ends right after it returns."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(work).result()


def bounded(gpu: Simulator, work: Callable[[], object]) -> None:
    """Calls of many threads leave no more behind than those of the first."""
    in_thread(work)
    blocks, events = gpu.blocks, gpu.events
    for _ in range(20):
        in_thread(work)
        assert gpu.blocks <= blocks
        assert gpu.events <= events


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
def test_threads_that_end_leave_no_memory_behind(gpu: Simulator, *, pooled: bool, own: bool) -> None:
    """With the caller's context, or one of each thread; with allocators of PyCUDA and of the caller."""
    import pycuda.driver as cuda

    definition = define(STEPS)
    host = [floats(21, 34), floats(34)]
    gpu.compile(definition, *host, options=IN_MEMORY)

    def work() -> None:
        mine = cuda.Device(0).make_context() if own else None
        if mine is None:
            context(0).push()
        try:
            given = arrays(*host)
            if pooled:
                given[0].allocator = lambda size: cuda.mem_alloc(size)  # noqa: PLW0108
            check(definition, host, definition(*given, options=IN_MEMORY))
            del given
        finally:
            cuda.Context.pop()

    bounded(gpu, work)


def test_what_kernels_of_ended_threads_use_is_let_go_of_by_others(gpu: Simulator) -> None:
    import pycuda.driver as cuda
    import pycuda.tools

    definition = define(STEPS)
    host = [floats(21, 34), floats(34)]
    gpu.compile(definition, *host, options=IN_MEMORY)
    given = arrays(*host)
    pool = pycuda.tools.DeviceMemoryPool()
    blocks, events = gpu.blocks, gpu.events
    for allocator in (lambda size: cuda.mem_alloc(size), pool.allocate):  # noqa: PLW0108
        given[0].allocator = allocator

        def work() -> None:
            with current(0):
                definition(*given, options=IN_MEMORY)

        gpu.hold(hold=True)
        for _ in range(5):
            in_thread(work)
        assert gpu.events == events + 5
        assert gpu.blocks >= blocks + 5
        gpu.hold(hold=False)
        in_thread(IN_FLIGHT.purge)  # where no context is
        pool.free_held()
        assert (gpu.blocks, gpu.events) == (blocks, events)


def test_threads_without_a_context_get_memory_that_any_thread_gives_back(gpu: Simulator) -> None:
    import pycuda.driver as cuda
    import pycuda.gpuarray

    definition = define(STEPS)
    host = [floats(21, 34), floats(34)]
    gpu.compile(definition, *host, options=IN_MEMORY)
    given = arrays(*host)

    def work() -> Any:
        assert cuda.Context.get_current() is None
        return definition(*given, options=IN_MEMORY)

    bounded(gpu, lambda: work() and None)
    found = in_thread(work)
    assert all(isinstance(value, pycuda.gpuarray.GPUArray) for value in found)
    assert all(isinstance(value.gpudata, cuda.PointerHolderBase) for value in found)
    check(definition, host, found)
    blocks = gpu.blocks
    gpu.log()
    del found
    assert gpu.blocks == blocks - 2
    assert "cuMemFree" in gpu.log()  # which waits: its other users are unknown
    gpu.fail("cuMemAlloc_v2", OUT_OF_MEMORY, times=2)
    with pytest.raises(MemoryError, match=r"^the CUDA device has not enough memory left"):
        in_thread(work)

    empty = define("def f(float(N) A) -> (B) { B(n) = A(n) + 1.0 }")
    gpu.compile(empty, floats(0))
    (none,) = arrays(floats(0))
    assert in_thread(lambda: empty(none)).shape == (0,)

    # For temporaries, no allocator of the caller's is asked, and nothing waits.
    given[0].allocator = pytest.fail
    out = arrays(host[0], host[0])
    gpu.log()
    in_thread(lambda: definition(*given, out=tuple(out), options=IN_MEMORY))
    assert not any(line.startswith("cuMemAlloc ") or line == "cuMemFree" for line in gpu.log())
    check(definition, host, tuple(out))

    def elsewhere() -> None:
        with tc.on_stream(0xABC):
            work()

    gpu.hold(hold=True)
    in_thread(elsewhere)
    gpu.hold(hold=False)
    in_thread(IN_FLIGHT.purge)


def test_contexts_may_be_gone_when_their_work_is_let_go_of(gpu: Simulator) -> None:
    import pycuda.driver as cuda

    definition = define(MM)
    host = [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)

    def work() -> None:
        mine = cuda.Device(0).make_context()
        given = arrays(*host)
        with tc.on_stream(0xABC):
            definition(*given)
        cuda.Context.pop()
        mine.detach()

    events = gpu.events
    gpu.hold(hold=True)
    in_thread(work)
    assert gpu.events == events + 1
    gpu.fail("cuEventQuery", CONTEXT_IS_DESTROYED)
    IN_FLIGHT.purge()
    gpu.hold(hold=False)
    assert gpu.events == events
    assert cuda.Context.get_device() == cuda.Device(0)
    gpu.fail("cuEventQuery", ILLEGAL_ADDRESS)
    with pytest.raises(tc.StickyDeviceError, match="an illegal memory access was encountered"):
        cuda_driver().record(DEFAULT_STREAM).done()


def test_events_keep_their_context(gpu: Simulator) -> None:
    import pycuda.driver as cuda

    def work() -> Any:
        cuda.Device(0).make_context()
        try:
            return cuda_driver().record(DEFAULT_STREAM)
        finally:
            cuda.Context.pop()

    gpu.log()
    event = in_thread(work)
    assert gpu.log() == ["cuCtxCreate on 0", "cuEventCreate 2", "cuEventRecord on 0"]
    assert event.done()


def test_faults_outlive_the_context_in_which_they_were_looked_for_first(gpu: Simulator) -> None:
    import pycuda.driver as cuda

    definition = define(GATHER)
    table, indices = floats(9, 5), np.full(33, 9, np.int32)
    gpu.compile(definition, table, indices)

    def work() -> None:
        cuda.Device(0).make_context()
        try:
            definition(*arrays(table, indices))
        finally:
            cuda.Context.pop()

    gpu.log()
    in_thread(work)
    assert any(line == "cuMemHostAlloc 4, flags 3, in the primary context" for line in gpu.log())
    with pytest.raises(tc.ArgumentError, match="pick: an index into dimension 0 of T is outside of 0:9"):
        tc.synchronize()


def test_a_device_without_a_context_is_told(gpu: Simulator) -> None:
    from tc.runtime.cuda.pycuda_contexts import primary_context

    gpu.fail("cuDevicePrimaryCtxRetain", INVALID)
    with pytest.raises(tc.DeviceError, match=r"^the CUDA driver failed: .*invalid argument"):
        primary_context(2)
