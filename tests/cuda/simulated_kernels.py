"""What becomes of kernels that were started, with a driver that is not there; ``test_simulated.py`` names this file."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tc
from tc.base.errors import StickyDeviceError
from tests.cuda.simulated_support import GATHER, ILLEGAL_ADDRESS, MM, define, floats, on
from tests.cuda.simulator import Simulator

CONFIGURATION = r"\(grid \d+x\d+x1, block \d+x\d+x1, \d+ bytes of shared memory per block\)"


def unloaded(gpu: Simulator) -> int:
    return sum(line == "cuLibraryUnload" for line in gpu.log())


def test_unreferenced_kernels_are_unloaded_once_they_have_run(gpu: Simulator) -> None:
    definition = define("def f(float(N) A) -> (B) { B(n) = A(n) + 4.0 }")
    gpu.compile(definition, floats(9))
    given, out = on(0, floats(9), floats(9))
    definition(given, out=out)
    tc.synchronize(0)
    assert unloaded(gpu) == 0
    definition(given, out=out)
    del definition
    gc.collect()
    tc.synchronize(1)
    assert unloaded(gpu) == 0
    gpu.fail("cuCtxSynchronize", 999)
    with pytest.raises(tc.DeviceError):
        tc.synchronize(0)
    assert unloaded(gpu) == 0
    tc.synchronize(0)
    assert unloaded(gpu) == 1


def test_kernels_of_graphs_stay(gpu: Simulator) -> None:
    definition = define("def f(float(N) A) -> (B) { B(n) = A(n) + 5.0 }")
    gpu.compile(definition, floats(9))
    given, out = on(0, floats(9), floats(9))
    gpu.capture(0x123)
    with tc.on_stream(0x123):
        definition(given, out=out)
    assert gpu.capture(0) == ""
    del definition
    gc.collect()
    tc.synchronize(0)
    assert unloaded(gpu) == 0


def test_what_kernels_found_is_told_when_they_are_gone(gpu: Simulator) -> None:
    definition = define(GATHER.replace("pick", "choose"))
    table, indices = floats(9, 5), np.full(33, 9, np.int32)
    gpu.compile(definition, table, indices)
    definition(*on(0, table, indices))
    del definition
    gc.collect()
    with pytest.raises(tc.ArgumentError, match="choose: an index into dimension 0 of T is outside of 0:9"):
        tc.synchronize()
    tc.synchronize()
    assert unloaded(gpu) == 1


def test_faults_that_come_later_name_what_was_started(gpu: Simulator) -> None:
    definition, other = define(MM), define("def f(float(N) A) -> (B) { B(n) = A(n) + 6.0 }")
    host = [floats(4, 5), floats(5, 6)]
    gpu.compile(definition, *host)
    gpu.compile(other, floats(9))
    given, (more,) = on(0, *host), on(0, floats(9))
    tc.synchronize()

    def fails(expected: str) -> None:
        gpu.fail("cuCtxSynchronize", ILLEGAL_ADDRESS)
        with pytest.raises(StickyDeviceError, match=f"CUDA_ERROR_ILLEGAL_ADDRESS: .*start another one{expected}$"):
            tc.synchronize()

    fails("")
    results = [definition(*given), definition(*given)]
    named = rf"; started since the last wait \(all\): mm: tc_kernel_0 {CONFIGURATION}"
    fails(named)
    results.append(other(more))
    fails(rf"{named}, f: tc_kernel_0 {CONFIGURATION}")
    gpu.fail("cuLaunchKernel", ILLEGAL_ADDRESS)
    with pytest.raises(StickyDeviceError, match=rf"^CUDA refused to run tc_kernel_0 .*{named}, f: tc_kernel_0"):
        definition(*given)
    gpu.fail("cuMemcpyDtoH", ILLEGAL_ADDRESS)
    with pytest.raises(StickyDeviceError, match=named):
        more.numpy()
    tc.synchronize(1)
    fails(rf"{named}, f: tc_kernel_0 {CONFIGURATION}")
    tc.synchronize(0)
    fails("")
    results += [definition(*given) for _ in range(20)]
    fails(rf"; started since the last wait \(the last 16\): mm: tc_kernel_0 {CONFIGURATION}")
    tc.synchronize(0)
