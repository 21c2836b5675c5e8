"""What calls on CUDA refuse, with a driver that is not there; ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.runtime.frameworks.arrays import describe
from tests.cuda.simulated_support import (
    GATHER,
    ILLEGAL_ADDRESS,
    MM,
    OUT_OF_MEMORY,
    Interface,
    check,
    define,
    floats,
    on,
    random,
    refused,
    streamed,
    tells_what_is_refused,
)
from tests.cuda.simulator import Simulator


def test_arrays_elsewhere_are_refused(gpu: Simulator) -> None:
    import torch  # which those who import this module can do without

    definition = define(MM)
    host = [floats(4, 4), floats(4, 4)]
    kernel = gpu.compile(definition, *host)
    mixed = on(0, *host)[0], host[1]
    refused(
        lambda: definition(*mixed),
        "argument B of mm: the array is in this machine's memory, target 'cuda:sm_90a' reads only that of a GPU; "
        "copy it there, or use target 'cpu'",
    )
    with pytest.raises(tc.DeviceError, match=r"only that of a GPU; pass \.cuda\(\), or use target 'cpu'$"):
        definition(*map(torch.from_numpy, host), target="cuda")
    refused(
        lambda: definition(*mixed, target="cpu"),
        "argument A of mm: the array is on cuda:0, target 'cpu' reads only this machine's memory; copy it there, or "
        "use target 'cuda'",
    )
    with pytest.raises(tc.DeviceError, match=r"the array is on cuda:0, target 'emulator' reads only this"):
        definition(*mixed, target="emulator")
    two = [*on(0, host[0]), *on(1, host[1])]
    refused(
        lambda: definition(*two),
        "argument B of mm: the array is on cuda:1, argument A of mm on cuda:0; copy them to one device",
    )
    refused(
        lambda: kernel(*on(1, *host)),
        "a kernel for sm_90a does not run on cuda:1, Simulated 1, compute capability 8.0; compile it for 'cuda:sm_80'",
    )


def test_interfaces_that_are_not_valid_are_refused(gpu: Simulator) -> None:
    place = "argument A of mm"
    array = streamed(floats(3), None)
    array.__cuda_array_interface__["mask"] = array
    with pytest.raises(tc.ArgumentError, match="A of mm: masked arrays are not supported; pass one without a mask"):
        describe(array, place)
    array.__cuda_array_interface__ = {"version": 3}
    with pytest.raises(
        tc.ArgumentError, match=r"A of mm: its __cuda_array_interface__ is not valid: KeyError\('shape'\)"
    ):
        describe(array, place)
    base = floats(4, 4)
    shifted = Interface(on(0, base)[0], base, base)
    shifted.__cuda_array_interface__["data"] = shifted.base.address + 2, False
    with pytest.raises(tc.ArgumentError, match="which is not aligned to 4 bytes; pass a copy"):
        describe(shifted, place)
    shifted.__cuda_array_interface__["data"] = shifted.base.address, True
    definition = define("def f(float(N,M) A) -> (B) { B(n,m) = A(n,m) }")
    with pytest.raises(tc.ArgumentError, match="output B of f: the array is read-only"):
        definition(on(0, base)[0], out=shifted)


def test_bad_indices_are_reported_at_the_next_synchronization(gpu: Simulator) -> None:
    definition = define(GATHER)
    table, good = floats(9, 5), random.integers(0, 9, 33).astype(np.int32)
    bad = good.copy()
    bad[7] = 9
    gpu.compile(definition, table, good)
    right, wrong = on(0, table, good), on(0, table, bad)
    message = "pick: an index into dimension 0 of T is outside of 0:9"
    definition(*wrong)
    with pytest.raises(tc.ArgumentError, match=message):
        tc.synchronize()
    tc.synchronize()
    definition(*wrong)
    with pytest.raises(tc.ArgumentError, match=message):
        definition(*right)
    check(definition, right, definition(*right))
    unchecked = tc.GpuOptions(check_indices=False)
    gpu.compile(definition, table, good, options=unchecked)
    check(definition, right, definition(*right, options=unchecked))


def test_what_the_driver_refuses_is_told(gpu: Simulator) -> None:
    definition = define(MM)
    a, b = floats(4, 5), floats(5, 6)
    gpu.compile(definition, a, b)
    given = on(0, a, b)
    tells_what_is_refused(gpu, lambda: definition(*given))
    gpu.fail("cuLaunchKernel", ILLEGAL_ADDRESS)
    with pytest.raises(
        tc.StickyDeviceError, match=r"an illegal memory access was encountered; the device takes no more"
    ):
        definition(*given)
    gpu.fail("cuMemAllocFromPoolAsync", OUT_OF_MEMORY)
    with pytest.raises(MemoryError, match="the CUDA device has no 96 bytes left"):
        definition(*given)
    gpu.fail("cuCtxSynchronize", 999)
    with pytest.raises(tc.DeviceError, match=r"CUDA_ERROR_UNKNOWN: an error that the driver does not explain$"):
        tc.synchronize()
    check(definition, given, definition(*given))


def test_there_is_no_such_device(gpu: Simulator) -> None:
    with pytest.raises(tc.DeviceError, match=r"there is no device cuda:7; this process has 2, numbered from 0$"):
        tc.synchronize(7)
    with pytest.raises(tc.DeviceError, match=r"there is no device cuda:2; this process has 2, numbered from 0$"):
        tc.to_device([1.0], 2)
    with pytest.raises(tc.ArgumentError, match="the array: element type complex128 is not supported"):
        tc.to_device(1j)
