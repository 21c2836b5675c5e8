"""What a long-running service does to the library, as functions that ``test_stress.py`` runs in processes of their own.

Each raises or prints; whoever runs it stops it when it takes too long.
"""

from __future__ import annotations

import gc
import os
import random
import threading
import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias
from unittest.mock import patch

import numpy as np
import pytest

import tc
from tc.dispatch.kernel import Kernel
from tc.runtime.host.c_compiler import compile_shared
from tests.waiting import PATIENCE

Array: TypeAlias = np.ndarray

TEXT = """
def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }
def moments(double(M,N) X) -> (total, least) { total(i) +=! X(i,j)  least(i) min=! X(i,j) }
def axpby(float a, float(N) x, float b) -> (y) { y(i) = a * x(i) + b * y(i) }
def pick(int32(M,N) X, int32(K) I) -> (Y) { Y(k,j) = X(I(k),j) }
def norm(double(M,N) X) -> (Y) { total(j) +=! X(i,j)  Y(i,j) = X(i,j) / (total(j) + 0.5) }
def across(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }
"""
PAGE = os.sysconf("SC_PAGE_SIZE")


def whole(source: random.Random, *shape: int, dtype: str = "float32") -> Array:
    """Small whole numbers: sums and products of them are exact."""
    return np.random.default_rng(source.getrandbits(32)).integers(-8, 9, shape).astype(dtype)


def check_mm(definitions: tc.Definitions, source: random.Random, size: int) -> None:
    a, b = whole(source, size, size // 2 + 1), whole(source, size // 2 + 1, 7)
    np.testing.assert_array_equal(definitions.mm(a, b), a @ b)


def check_moments(definitions: tc.Definitions, source: random.Random, size: int) -> None:
    x = whole(source, size, 5, dtype="float64")
    results = definitions.moments(x)
    assert isinstance(results, tuple)
    np.testing.assert_array_equal(results[0], x.sum(1))
    np.testing.assert_array_equal(results[1], x.min(1))


def check_axpby(definitions: tc.Definitions, source: random.Random, size: int) -> None:
    x, y = whole(source, size), whole(source, size)
    expected = 2 * x - 3 * y
    assert definitions.axpby(2, x, -3, out=y) is y
    np.testing.assert_array_equal(y, expected)


def check_pick(definitions: tc.Definitions, source: random.Random, size: int) -> None:
    x, indices = whole(source, size, 3, dtype="int32"), np.array([source.randrange(size) for _ in range(9)], np.int32)
    if source.random() < 0.5:
        np.testing.assert_array_equal(definitions.pick(x, indices), x[indices])
        return
    # One thread's mistake must not become another one's error.
    indices[source.randrange(9)] = source.choice((-1, size))
    with pytest.raises(tc.ArgumentError, match=f"outside of 0:{size} "):
        definitions.pick(x, indices)


CHECKS: dict[str, Callable[[tc.Definitions, random.Random, int], None]] = {
    "mm": check_mm,
    "moments": check_moments,
    "axpby": check_axpby,
    "pick": check_pick,
}


def call_and_compile(rounds: int, threads: int, sizes: Sequence[int] = (1, 7, 33, 129)) -> Counter[str]:
    """Threads that call the same definitions, in old and new sizes, and definitions of their own, all at once.

    ``sizes``: of the calls; each one is a kernel of every definition.

    The number of calls per definition, and of the rounds and definitions that were made beside them.
    """
    shared = tc.define(TEXT)
    made: list[list[Kernel]] = []

    # Between rounds, while all threads wait.
    def next_round() -> None:
        made.append([])

    start = threading.Barrier(threads, action=next_round, timeout=PATIENCE)

    def work(number: int) -> Counter[str]:
        source, done = random.Random(number), Counter[str]()
        for turn in range(rounds):
            try:
                start.wait()
                # Everybody asks for the same new kernel.
                made[-1].append(shared.mm.compile((len(made), 3), (3, 7)))
                for _ in range(200):
                    name = source.choice(list(CHECKS))
                    CHECKS[name](shared, source, source.choice(sizes))
                    done[name] += 1
                if turn % 5 == number % 5:
                    CHECKS[source.choice(list(CHECKS))](tc.define(TEXT), source, 1 + source.randrange(40))
                    done["own definitions"] += 1
            except BaseException:
                # The others must not wait for this thread.
                start.abort()
                raise
        return done

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(work, number) for number in range(threads)]
        failures = [error for future in futures if (error := future.exception()) is not None]
        # The first cause; the others only saw the broken barrier.
        for error in sorted(failures, key=lambda e: isinstance(e, threading.BrokenBarrierError)):
            raise error
        total = sum((future.result() for future in futures), Counter[str]())
    assert all(kernel is kernels[0] for kernels in made for kernel in kernels), "a kernel was made twice"
    total["rounds"] = len(made)
    return total


def compute_from_many_threads(calls: int, threads: int) -> None:
    """Threads whose calls are all worth several threads of the pool, which serves one of them at a time."""
    tc.set_threads(threads)
    definitions = tc.define(TEXT)

    def work() -> None:
        for _ in range(calls):
            compute_in_parallel(definitions)

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(work) for _ in range(threads)]:
            future.result()


# --- fork ------------------------------------------------------------------------------------------------------


def compute_in_parallel(definitions: tc.Definitions) -> None:
    """A call that is worth two threads, so that the pool must work."""
    x = np.arange(257 * 129, dtype=np.float64).reshape(257, 129)
    results = definitions.moments(x)
    assert isinstance(results, tuple)
    np.testing.assert_array_equal(results[0], x.sum(1))
    np.testing.assert_array_equal(results[1], x.min(1))
    assert len(list(Path("/proc/self/task").iterdir())) > 1, "nothing ran in parallel"


def in_child(work: Callable[[], None]) -> None:
    """Runs ``work`` in the child of a fork and waits for it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            if status:
                traceback.print_exc()
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0, "the child of a fork failed"


def fork_after_parallel_calls() -> None:
    """Children compute in parallel and compile, and so do their children."""
    tc.set_threads(2)
    definitions = tc.define(TEXT)
    compute_in_parallel(definitions)

    def child() -> None:
        compute_in_parallel(definitions)
        compute_in_parallel(tc.define(TEXT))
        in_child(lambda: compute_in_parallel(definitions))

    for _ in range(3):
        in_child(child)
    compute_in_parallel(definitions)


def fork_while_others_work(children: int) -> None:
    """Forks while other threads of the parent compile new kernels, wait for one, and compute."""
    tc.set_threads(2)
    definitions = tc.define(TEXT)
    compute_in_parallel(definitions)
    stop, begun, sizes = threading.Event(), threading.Event(), iter(range(1, 10**6))

    def compile_for_ever() -> None:
        while not stop.is_set():
            begun.set()
            definitions.mm.compile((next(sizes), 3), (3, 7))

    def compute_for_ever() -> None:
        while not stop.is_set():
            compute_in_parallel(definitions)

    workers = [threading.Thread(target=work) for work in (compile_for_ever, compile_for_ever, compute_for_ever)]
    for worker in workers:
        worker.start()

    def child(number: int) -> None:
        compute_in_parallel(definitions)
        # The kernel that the parent may have been making at the time of the fork.
        for size in range(max(1, number - 1), number + 2):
            a, b = np.ones((size, 3), np.float32), np.ones((3, 7), np.float32)
            np.testing.assert_array_equal(definitions.mm(a, b), a @ b)

    try:
        for _ in range(children):
            begun.clear()
            assert begun.wait(PATIENCE)  # a kernel that the last child did not see is being compiled
            in_child(partial(child, next(sizes)))
    finally:
        stop.set()
        for worker in workers:
            worker.join()


# --- resources -------------------------------------------------------------------------------------------------


def resident() -> int:
    """Bytes of memory that this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def entries(kind: str) -> int:
    """How many descriptors (``fd``) or threads (``task``) this process has."""
    return len(list(Path("/proc/self", kind).iterdir()))


def mappings() -> int:
    """How many memory maps this process has."""
    return len(Path("/proc/self/maps").read_text().splitlines())


def call_many_times(times: int, threads: int) -> tuple[int, int]:
    """Growth of memory in bytes, and of descriptors, maps and threads together, over so many calls of every kind.

    So many threads share them out.
    """
    import torch  # which the other functions, under sanitizers too, can do without

    tc.set_threads(2)
    definitions, source = tc.define(TEXT), random.Random(0)
    a, b, x, y = whole(source, 7, 5), whole(source, 5, 3), whole(source, 129), whole(source, 129)
    large, rows = whole(source, 257, 129, dtype="float64"), whole(source, 7, 3, dtype="int32")
    good, bad = np.array([0, 6], np.int32), np.array([0, 7], np.int32)
    out = np.empty((7, 3), np.float32)
    tensors = torch.from_numpy(a), torch.from_numpy(b), torch.empty(7, 3)

    def refused() -> None:
        with pytest.raises(tc.ArgumentError):
            definitions.pick(rows, bad)

    calls: list[Callable[[], object]] = [
        lambda: definitions.mm(a, b),
        lambda: definitions.mm(a, b, out=out),
        lambda: definitions.mm(*tensors[:2]),
        lambda: definitions.mm(*tensors[:2], out=tensors[2]),
        lambda: definitions.norm(large),
        lambda: definitions.axpby(0.5, x, 0.5, out=y),
        lambda: definitions.axpby(0.5, y, 0.5, out=y),
        lambda: definitions.pick(rows, good),
        refused,
    ]

    def repeat(times: int) -> None:
        for number in range(times):
            for call in calls:
                call()
            if number % 10 == 0:
                definitions.moments(large)

    with ThreadPoolExecutor(threads) as pool:

        def repeat_on_all(times: int) -> None:
            for future in [pool.submit(repeat, times // threads) for _ in range(threads)]:
                future.result()

        repeat_on_all(max(1000, times // 10))
        before, things = resident(), entries("fd") + entries("task") + mappings()
        repeat_on_all(times)
        return resident() - before, entries("fd") + entries("task") + mappings() - things


def peak_of_a_call() -> tuple[int, int]:
    """The most memory in bytes that a call took beyond its arrays, and what its kernel says that it needs.

    Everything else that a first call brings along was there before: threads, their stacks, the interpreter's objects.
    """
    tc.set_threads(2)
    definitions, source = tc.define(TEXT), random.Random(0)
    options = tc.CpuOptions(packed_operands=1 << 18)
    small, a, b = (whole(source, rows, 1029) for rows in (3, 1031, 1033))
    out = np.ones((1031, 1033), np.float32)  # zeros would not be resident
    kernel = definitions.across.compile(a, b, options=options)
    for _ in range(3):
        compute_in_parallel(definitions)
        definitions.across(small, small, options=options, out=np.zeros((3, 3), np.float32))
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = resident()
    kernel(a, b, out=out)
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) << 10
    np.testing.assert_array_equal(out, a @ b.T)
    return peak - before, kernel.resources.temporaries + 2 * kernel.resources.scratch


def make_and_drop_definitions(count: int) -> tuple[float, float, int]:
    """Growth per definition of memory in bytes and of maps, and growth of descriptors over all of them.

    All of them are equal, and compiled once: what the compiler's process takes is not ours.
    """
    x = np.arange(7, dtype=np.float32)

    def make() -> weakref.ref[tc.Comprehension]:
        definitions = tc.define("def axpy(float a, float(N) X) -> (Y) { Y(i) = a * X(i) + 1 }")
        np.testing.assert_array_equal(definitions.axpy(3, x), 3 * x + 1)
        return weakref.ref(definitions.axpy)

    compiled = cache(compile_shared)
    with patch("tc.compiler.compiling", lambda *arguments: nullcontext(lambda: compiled(*arguments))):
        for _ in range(20):
            make()
        before, maps, descriptors = resident(), mappings(), entries("fd")
        dropped = [make() for _ in range(count)]
        grown = resident() - before
    assert all(reference() is None for reference in dropped), "a definition outlives its last use"
    return grown / count, (mappings() - maps) / count, entries("fd") - descriptors
