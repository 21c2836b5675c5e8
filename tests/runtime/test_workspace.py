"""The memory that a call needs beyond its arrays: its own while it runs, there again for the next one, bounded."""

from __future__ import annotations

import resource
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tc.runtime.loaded_kernel import NO_MEMORY, Memory
from tests.programs import run
from tests.runtime.kernels import marks


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.parametrize(("shared", "scratch"), [(0, 64), (64, 0), (192, 448), (3 << 20, 64 << 10)])
def test_every_call_and_every_chunk_has_its_own(shared: int, scratch: int) -> None:
    kernel = marks(Memory(shared, scratch))

    def call(number: int) -> list[int]:
        start.wait()
        return [kernel.launch((), (16 * number, shared), 1 + number % 3) for _ in range(10)]

    start = threading.Barrier(12)
    with ThreadPoolExecutor(12) as threads:
        assert {fault for found in threads.map(call, range(12)) for fault in found} == {0}


def test_the_next_call_finds_the_memory_that_the_last_one_left() -> None:
    small, large = marks(Memory(64, 64)), marks(Memory(6 << 20, 1 << 20))
    for kernel, shared in ((large, 6 << 20), (small, 64), (large, 6 << 20)):
        assert kernel.launch((), (1, shared), 2) == 0
    before = faults()
    for _ in range(10):
        assert small.launch((), (1, 64), 2) == 0
        assert large.launch((), (1, 6 << 20), 2) == 0
    # Fresh memory would cost 40 faults, on the largest pages.
    assert faults() - before < 10


def test_what_is_kept_is_bounded() -> None:
    program = """
import threading
from concurrent.futures import ThreadPoolExecutor
from tc.runtime.loaded_kernel import Memory
from tests.runtime.kernels import marks
from tests.stress import mappings, resident

SIZE = 1 << 20
kernel, start = marks(Memory(SIZE, 0)), threading.Barrier(32)

def call(number):
    start.wait()
    return kernel.launch((), (number, SIZE), 1)

with ThreadPoolExecutor(32) as threads:
    assert set(threads.map(call, range(32))) == {0}
    before, maps = resident(), mappings()
    for _ in range(20):
        assert set(threads.map(call, range(32))) == {0}
    print(resident() - before, mappings() - maps)
"""
    grown, maps = map(int, run(program).split())
    assert grown < 10 << 20
    assert maps <= 8


def test_the_child_of_a_fork_has_memory_of_its_own() -> None:
    program = """
import os
from tc.runtime.loaded_kernel import Memory
from tests.runtime.kernels import marks

kernel = marks(Memory(1 << 16, 64))
assert kernel.launch((), (1, 1 << 16), 2) == 0
child = os.fork()
for mark in range(50):
    assert kernel.launch((), (mark + 50 * (child == 0), 1 << 16), 2) == 0
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    run(program)


def test_a_system_without_memory_is_reported() -> None:
    assert marks(Memory(1 << 60, 0)).launch((), (1, 0), 1) == NO_MEMORY
