"""The loops that measure the machine do what they are counted for."""

from __future__ import annotations

import ctypes
from resource import RUSAGE_THREAD, getrusage

import numpy as np
import pytest

from tc.targets.target import processor, resolve
from tc.tuner.roofline.roofs import compiled_roofs, function


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return compiled_roofs(resolve(processor()))


def test_chains_of_multiplications_and_additions(library: ctypes.CDLL) -> None:
    run = function(library, "tc_multiply_add", ctypes.c_long, ctypes.c_float, ctypes.c_float)
    lanes = resolve(processor()).vector_bytes // 4
    chains = [3.0 + c for c in range(12)]
    for rounds in range(4):
        assert run(rounds, 0.5, 3.0) == sum(chains) * lanes
        chains = [0.5 * value + 3.0 for value in chains]


def test_reading_sums_up(library: ctypes.CDLL) -> None:
    run = function(library, "tc_read", ctypes.c_void_p, ctypes.c_long, ctypes.c_long)
    width = resolve(processor()).vector_bytes // 4
    memory = np.zeros(1024 + 16, np.float32)
    skipped = -memory.ctypes.data % 64 // 4
    values = memory[skipped : skipped + 24 * width]
    values[...] = np.arange(values.size) % 7
    assert run(values.ctypes.data, 16, 3) == 3 * values[: 16 * width].sum()


def test_memory_is_allocated_and_freed(library: ctypes.CDLL) -> None:
    take = function(library, "tc_fresh", ctypes.c_long, ctypes.c_long)
    before = getrusage(RUSAGE_THREAD).ru_minflt
    assert take(1 << 22, 3) == 0.0
    assert getrusage(RUSAGE_THREAD).ru_minflt - before >= 3 * 2
    assert take(1 << 62, 2) == 2.0


def test_copying(library: ctypes.CDLL) -> None:
    run = function(library, "tc_copy", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)
    source, target = np.arange(100, dtype=np.uint8), np.zeros(100, np.uint8)
    run(target.ctypes.data, source.ctypes.data, 77, 2)
    np.testing.assert_array_equal(target, np.where(source < 77, source, 0))
