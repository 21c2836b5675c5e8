"""What tests with a driver that is not there (``simulator.py``) have in common: definitions, arrays, checks."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tc.runtime.frameworks.device_array import DeviceArray
from tests.cuda.simulator import Simulator

MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"
GATHER = "def pick(float(E,D) T, int32(B) I) -> (O) { O(b,d) = T(I(b),d) }"
STEPS = """def steps(float(N,K) A, float(K) s) -> (B, C) {
    B(n,k) = A(n,k) * s(k)
    total(k) +=! B(n,k)
    C(n,k) = total(k) - B(n,k)
}"""
INVALID, OUT_OF_MEMORY, INVALID_IMAGE, ILLEGAL_ADDRESS = 1, 2, 200, 700
random = np.random.default_rng(20261122)


def on(device: int, *arrays: np.ndarray) -> list[DeviceArray]:
    return [tc.to_device(array, device) for array in arrays]


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape, np.float32)


def define(text: str) -> tc.Comprehension:
    return tc.define(text).single()


def results(found: object) -> list[np.ndarray]:
    values = found if isinstance(found, tuple) else (found,)
    assert all(isinstance(value, DeviceArray) for value in values)
    return [value.numpy() for value in values if isinstance(value, DeviceArray)]


def check(definition: tc.Comprehension, arguments: list[Any], found: object) -> None:
    """The result is what the oracle says for the same arguments, which it reads from the device."""
    oracle = definition.oracle(*arguments)
    for (name, expected), values in zip(oracle.items(), results(found), strict=True):
        assert compare(expected, values).ok, name


class Interface:
    """An array of some framework: elements of a device array, with strides and a stream of its own."""

    def __init__(self, base: DeviceArray, window: np.ndarray, origin: np.ndarray, stream: int | None = None) -> None:
        self.base = base
        offset = window.__array_interface__["data"][0] - origin.__array_interface__["data"][0]
        self.__cuda_array_interface__: dict[str, object] = {
            "version": 3,
            "shape": window.shape,
            "strides": window.strides,
            "typestr": window.dtype.str,
            "data": (base.address + offset, False),
            "stream": stream,
        }


def streamed(array: np.ndarray, stream: int | None, device: int = 0) -> Interface:
    return Interface(on(device, array)[0], array, array, stream)


def refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(tc.DeviceError, match=f"^{re.escape(message)}$"):
        call()


def tells_what_is_refused(gpu: Simulator, call: Callable[[], object]) -> None:
    """Both drivers say the same of the first call of a kernel and of its launch."""
    gpu.fail("cuLibraryLoadData", INVALID_IMAGE)
    with pytest.raises(
        tc.DeviceError,
        match=r"^the CUDA driver, which is for CUDA 13\.0, cannot read what the compiler made "
        r"\(CUDA_ERROR_INVALID_IMAGE: .*\); update the driver, or compile by NVRTC of its major version, for example: "
        r"pip install ",
    ):
        call()
    gpu.fail("cuLibraryLoadData", INVALID)
    with pytest.raises(tc.DeviceError, match=r"^the CUDA driver failed: CUDA_ERROR_INVALID_VALUE: invalid argument$"):
        call()
    gpu.fail("cuLaunchKernel", INVALID)
    with pytest.raises(
        tc.DeviceError,
        match=r"^CUDA refused to run tc_kernel_0 \(grid \d+x\d+x1, block \d+x\d+x1, \d+ bytes of shared memory per "
        r"block\): CUDA_ERROR_INVALID_VALUE: invalid argument$",
    ) as caught:
        call()
    assert not isinstance(caught.value, tc.StickyDeviceError)


class Exporter:
    """An exporter whose exports are counted while they are held."""

    def __init__(self, base: DeviceArray) -> None:
        self.base = base
        self.exports: list[weakref.ref[Any]] = []
        self.streams: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.base.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> object:
        self.streams.append(stream)
        lease = DeviceArray(self.base.shape, self.base.type, self.base.memory)
        self.exports.append(weakref.ref(lease))
        return lease.__dlpack__()
