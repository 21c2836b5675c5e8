"""Programs: kernels that run one after the other, over memories that are numbered."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.runtime.host_program import HostProgram, PackedProgram, Step, Word, copying
from tc.runtime.loaded_kernel import Memory
from tests.runtime.kernels import MARKS, addresses, kernel, load, ramp

# Writes twice x to y; its fault is the first element of x.
TWICE = """
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  const float *x = buffers[0];
  float *y = buffers[1];
  for (int64_t i = 0; i < scalars[0].i; i++) y[i] = 2 * x[i];
  *runtime->fault = (int32_t)x[0];
}
"""
FLOAT = 4
HUGE = 1 << 60


def report(fault: int) -> None:
    raise ValueError(f"fault {fault}")


def twice(source: Word, target: Word, count: int) -> Step:
    loaded = kernel(TWICE, 2, (ScalarType.INT64,))
    return Step(loaded.address, loaded.memory, (source, target, Word.number(count)), 2, 0, report)


def test_words_are_places_behind_memories_and_numbers() -> None:
    """The arena is the memory behind those of the caller; each run has its own."""
    x, y = ramp(9), np.zeros(4, np.float32)
    x[:2] = 0
    steps = (twice(Word(0, FLOAT), Word(2, 64), 8), twice(Word(2, 64), Word(1, 0), 4))
    program = PackedProgram(HostProgram(steps, 2, arena=64 + 8 * FLOAT))
    program.run(addresses(x, y), 1)
    np.testing.assert_array_equal(y, 4 * x[1:5])
    own = np.zeros(32, np.float32)
    PackedProgram(HostProgram(steps, 2)).run(addresses(x, y, own), 1)
    np.testing.assert_array_equal(own[16:24], 2 * x[1:])
    constant = np.zeros(8, np.float32)
    fixed = (twice(Word(0, 0), Word.number(constant.ctypes.data), 8),)
    PackedProgram(HostProgram(fixed, 1)).run(addresses(x), 1)
    np.testing.assert_array_equal(constant, 2 * x[:8])
    assert Word(1, 8).at([10, 20]) == 28
    assert Word.number(5).at([]) == 5


def test_the_first_fault_ends_a_program() -> None:
    x, y, z = np.zeros(2, np.float32), np.full(2, 3, np.float32), np.zeros(2, np.float32)
    steps = (twice(Word(0, 0), Word(2, 0), 2), twice(Word(1, 0), Word(2, 0), 2), twice(Word(0, 0), Word(2, 0), 2))
    with pytest.raises(ValueError, match=r"^fault 3$"):
        PackedProgram(HostProgram(steps, 3)).run(addresses(x, y, z), 1)
    np.testing.assert_array_equal(z, 6)


def test_copies_are_steps() -> None:
    x, y = ramp(9), np.zeros(9, np.float32)
    PackedProgram(HostProgram((copying(Word(1, FLOAT), Word(0, 0), 8 * FLOAT),), 2)).run(addresses(x, y), 1)
    np.testing.assert_array_equal(y[1:], x[:-1])
    PackedProgram(HostProgram((), 2)).run(addresses(x, y), 1)


def test_an_arena_that_is_too_large() -> None:
    program = PackedProgram(HostProgram((twice(Word(0, 0), Word(1, 0), 0),), 1, arena=HUGE))
    expected = rf"^no memory for the values that kernels pass to each other \({HUGE} bytes\)$"
    with pytest.raises(MemoryError, match=expected):
        program.run(addresses(ramp(3)), 1)


def test_each_run_has_an_arena_and_each_kernel_its_memory() -> None:
    """The kernel fills its memory, and finds that nothing else does."""
    loaded = load(MARKS, 0, (ScalarType.INT64, ScalarType.INT64), Memory(1 << 12, 64))

    def work(number: int) -> None:
        x, y = np.full(1000, 0, np.float32), np.zeros(1000, np.float32)
        x[1:] = number
        marks = Step(loaded.address, loaded.memory, (Word.number(number), Word.number(1 << 12)), 0, 2, report)
        steps = (twice(Word(0, 0), Word(2, 0), 1000), marks, marks, twice(Word(2, 0), Word(1, 0), 1000))
        program = PackedProgram(HostProgram(steps, 2, arena=1000 * FLOAT))
        for _ in range(20):
            program.run(addresses(x, y), 2)
            np.testing.assert_array_equal(y, 4 * x)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
