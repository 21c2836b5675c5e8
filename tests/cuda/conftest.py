"""The simulated driver of ``simulator.py``, for tests in processes that have no other one."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import suppress

import pytest

import tc
from tc.runtime.cuda.cuda import wait_for_device
from tc.runtime.cuda.started import STARTED
from tests.cuda.simulator import Simulator, simulator


@pytest.fixture(scope="session", autouse=True)
def imported() -> None:
    """What was imported is never let go of: collecting what tests leave need not look at it."""
    gc.freeze()


@pytest.fixture
def gpu() -> Iterator[Simulator]:
    """The simulator, with nothing in its log; what a test allocates must go with it."""
    found = simulator()
    _settle()
    blocks, events = found.blocks, found.events
    found.log()
    yield found
    found.hold(hold=False)
    found.fail("", 0)
    found.capture(0)
    _settle()
    # Words for faults stay as long as their kernels, which definitions keep.
    assert found.blocks - blocks <= 1
    assert found.events <= events


def _settle() -> None:
    """Drops all that is unreferenced: arrays, and kernels whose faults are not awaited."""
    gc.collect()
    for device in range(2):
        wait_for_device(device)
    for _ in range(2):
        with suppress(tc.ArgumentError):
            STARTED.raise_faults()
    gc.collect()
