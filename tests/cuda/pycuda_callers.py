"""Callers of a simulated driver who use PyCUDA: their contexts, their arrays, and what they may leave behind."""

from __future__ import annotations

import functools
import gc
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tc
from tc.runtime.cuda.cuda import IN_FLIGHT
from tc.runtime.frameworks.device_array import DeviceArray
from tests.cuda.simulator import Simulator, simulator


@functools.cache
def context(device: int) -> Any:
    """The caller's, of PyCUDA."""
    # The simulator has not all functions that the package is linked against.
    sys.setdlopenflags(os.RTLD_LAZY)
    import pycuda.driver as cuda

    cuda.init()
    return cuda.Device(device).retain_primary_context()


@contextmanager
def current(device: int) -> Iterator[None]:
    """In the block, the caller's context of a device is current."""
    context(device).push()
    try:
        yield
    finally:
        context(device).pop()


@contextmanager
def cleanly(capfd: pytest.CaptureFixture[str]) -> Iterator[Simulator]:
    """The simulator, with a context on its first device; what is allocated must go at the end, without warnings."""
    found = simulator()
    with current(0), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        gc.collect()
        blocks, events = found.blocks, found.events
        found.log()
        yield found
        found.hold(hold=False)
        found.fail("", 0)
        IN_FLIGHT.purge()
        gc.collect()
    # Words for faults stay as long as their kernels, which definitions keep.
    assert found.blocks - blocks <= 1
    assert found.events <= events
    assert [str(warning.message) for warning in warned] == []
    assert "PyCUDA" not in capfd.readouterr().err


def arrays(*given: np.ndarray) -> list[Any]:
    """Copies on the device of the current context."""
    import pycuda.gpuarray

    return [pycuda.gpuarray.to_gpu(array) for array in given]


def check(definition: tc.Comprehension, given: list[np.ndarray], found: object) -> None:
    """The results are those of the oracle."""
    values = found if isinstance(found, tuple) else (found,)
    expected = definition.reference(*given)
    for value, right in zip(values, expected if isinstance(expected, tuple) else (expected,), strict=True):
        copied = value.numpy() if isinstance(value, DeviceArray) else value.get()
        assert np.allclose(copied, right, rtol=1e-5, atol=1e-5)
