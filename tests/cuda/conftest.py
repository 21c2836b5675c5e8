"""The simulated driver of ``simulator.py``, for tests in processes that have no other one."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tc.runtime.cuda import wait_for_device
from tests.cuda.simulator import Simulator, simulator


@pytest.fixture
def gpu() -> Iterator[Simulator]:
    """The simulator, with nothing in its log; what a test allocates must go with it."""
    found = simulator()
    gc.collect()
    blocks, events = found.blocks, found.events
    found.log()
    yield found
    found.hold(hold=False)
    found.fail("", 0)
    found.capture(0)
    gc.collect()
    for device in range(2):
        wait_for_device(device)
    gc.collect()
    # Words for faults stay as long as their kernels, which definitions keep.
    assert found.blocks - blocks <= 1
    assert found.events <= events
