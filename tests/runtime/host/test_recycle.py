"""Results that are let go of leave their memory to the next ones of their size."""

from __future__ import annotations

import gc
import mmap
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from resource import RUSAGE_THREAD, getrusage

import numpy as np
import pytest
import torch

import tc
from tc.base.types import ScalarType
from tc.runtime.frameworks.arrays import allocator, describe
from tc.runtime.frameworks.numpy_arrays import numpy_address, numpy_allocator
from tc.runtime.host.pages import FRESH_BYTES, LEAST_BYTES
from tc.runtime.host.recycle import BlockStore
from tc.runtime.views.view import Framework

SIZE = FRESH_BYTES + 12345


def faults() -> int:
    return getrusage(RUSAGE_THREAD).ru_minflt


@pytest.mark.parametrize("framework", [Framework.NUMPY, Framework.TORCH, Framework.JAX])
def test_a_result_takes_over_the_memory_of_the_last_one(framework: Framework) -> None:
    if framework is Framework.JAX:
        pytest.importorskip("jax")
    allocate = allocator(framework, (SIZE,), ScalarType.UINT8)
    first = allocate()
    address = describe(first, "first").address
    second = allocate()
    assert abs(describe(second, "second").address - address) >= SIZE
    del first
    third = allocate()
    assert describe(third, "third").address == address


def test_memory_that_is_taken_over_costs_no_faults() -> None:
    store = BlockStore()
    store.lease(SIZE).fill(1)
    before = faults()
    store.lease(SIZE).fill(2)
    assert faults() - before < 10


def test_calls_in_a_loop_use_the_same_memory() -> None:
    double = tc.define("def double_(float(N) X) -> (Y) { Y(i) = 2 * X(i) }").double_
    x = np.ones(FRESH_BYTES // 4, np.float32)
    tensor = torch.from_numpy(x)
    arrays = {describe(double(x), "result").address for _ in range(5)}
    tensors = {describe(double(tensor), "result").address for _ in range(5)}
    assert len(arrays) == 1
    assert tensors == arrays


def test_large_results_begin_with_a_line() -> None:
    shape = (LEAST_BYTES // 4 + 7, 1)
    kept = [numpy_allocator(shape, ScalarType.FLOAT32)() for _ in range(10)]
    assert all(a.shape == shape and a.dtype == np.float32 and numpy_address(a) % 64 == 0 for a in kept)


def test_views_keep_their_memory() -> None:
    store = BlockStore()
    whole = store.lease(SIZE)
    address, part = numpy_address(whole), whole[100:200].reshape(10, 10).T
    del whole
    part[...] = 7
    other = store.lease(SIZE)
    assert numpy_address(other) != address
    other.fill(1)
    assert (part == 7).all()
    del part
    assert numpy_address(store.lease(SIZE)) == address


def test_tensors_and_their_storages_keep_their_memory() -> None:
    allocate = allocator(Framework.TORCH, (SIZE,), ScalarType.UINT8)
    tensor = allocate()
    assert isinstance(tensor, torch.Tensor)
    address, storage, array = tensor.data_ptr(), tensor.untyped_storage(), tensor[5:].numpy()
    del tensor
    assert describe(allocate(), "other").address != address
    del storage
    assert describe(allocate(), "other").address != address
    del array
    kept = [describe(allocated, "other").address for allocated in [allocate(), allocate()]]
    assert address in kept


def address_space() -> int:
    """Bytes that this process has mapped."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE


def test_what_is_kept_and_used_was_in_use_at_one_time() -> None:
    unit, mapped = 256 << 20, address_space()

    def units() -> int:
        return round((address_space() - mapped) / unit)

    store = BlockStore()
    used = {n: store.lease(unit * n) for n in (1, 2, 3)}
    assert units() == 6
    used.clear()
    assert units() == 6
    again = [store.lease(unit * 3)]
    assert units() == 6
    # Nothing kept fits: the oldest blocks return to the system for one that is not larger than both.
    again.append(store.lease(unit * 3))
    assert units() == 6
    again.clear()
    large = store.lease(unit * 10)
    assert units() == 10
    del large, store
    assert units() == 0


def test_a_finalizer_may_give_back_during_an_allocation() -> None:
    class Cycle:
        def __init__(self, array: np.ndarray) -> None:
            self.array, self.itself = array, self

    store = BlockStore()
    for _ in range(100):
        Cycle(store.lease(SIZE))
        gc.collect(0)
    assert numpy_address(store.lease(SIZE))


def test_threads_never_share_a_block() -> None:
    store, start = BlockStore(), threading.Barrier(8)

    def use(number: int) -> bool:
        start.wait()
        whole = True
        for turn in range(50):
            array = store.lease(2 << 20 << (turn + number) % 2)[:: 1 << 12]
            array[...] = number
            whole = whole and bool((array == number).all())
        return whole

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(use, range(8)))


def run(program: str) -> str:
    """What a program of its own prints; nothing on standard error."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_child_of_a_fork_has_memory_of_its_own() -> None:
    program = f"""
import os
from tc.runtime.host.recycle import BlockStore

store = BlockStore()
store.lease({SIZE}).fill(1)
used = store.lease({SIZE})
used.fill(2)
child = os.fork()
if child == 0:
    used.fill(3)
    del used
    store.lease({SIZE}).fill(4)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert (used == 2).all()
"""
    run(program)


def test_blocks_end_quietly_with_the_interpreter() -> None:
    program = f"""
import numpy
from tc.runtime.frameworks.numpy_arrays import empty_bytes

kept = empty_bytes({SIZE})
numpy.kept = empty_bytes({SIZE})
"""
    run(program)


def test_a_system_without_memory_is_reported() -> None:
    with pytest.raises(MemoryError, match=r"the system has no \d+ bytes for a result"):
        BlockStore().lease(1 << 60)
