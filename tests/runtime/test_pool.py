"""The thread pool: every iteration once, in pieces for whoever has time, whoever calls, and after a fork."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tc.codegen.prelude
from tc.base.environment import Environment, environment
from tc.base.errors import DeviceError
from tc.base.types import ScalarType
from tc.runtime.host.c_compiler import compile_shared, find_compiler
from tc.runtime.host.flags import SHARED
from tc.runtime.host.native import native_binary
from tc.runtime.host.pool import shared_pool
from tests.runtime.kernels import HEADER, TOGETHER, axpy, chunks, kernel, ramp
from tests.waiting import PATIENCE

LEAST, MOST = -(2**63), 2**63 - 1

NESTED = """
struct context { const tc_runtime *runtime; int32_t *seen; };
struct row { int32_t *seen; };
static void inner(const void *context, char *scratch, int64_t begin, int64_t end) {
  const struct row *c = context;
  for (int64_t j = begin; j < end; j++) c->seen[j] += 1;
}
static void outer(const void *context, char *scratch, int64_t begin, int64_t end) {
  const struct context *c = context;
  for (int64_t i = begin; i < end; i++) {
    struct row row = {c->seen + 37 * i};
    c->runtime->parallel_for(c->runtime, inner, &row, 0, 37);
  }
}
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  struct context c = {runtime, buffers[0]};
  runtime->parallel_for(runtime, outer, &c, 0, 41);
}
"""


# The first piece waits until everybody else has done all the rest, a part of its own share included.
STANDING = """
#include <time.h>
struct context { int64_t *done; int64_t count; int32_t *fault; };
static void body(const void *context, char *scratch, int64_t begin, int64_t end) {
  const struct context *c = context;
  time_t start = time(0);
  if (begin == 0)
    while (__atomic_load_n(c->done, __ATOMIC_SEQ_CST) < c->count - end)
      if (time(0) > start + 900) { __atomic_store_n(c->fault, 1, __ATOMIC_RELAXED); return; }
  __atomic_fetch_add(c->done, end - begin, __ATOMIC_SEQ_CST);
}
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  struct context c = {buffers[0], scalars[0].i, runtime->fault};
  runtime->parallel_for(runtime, body, &c, 0, c.count);
}
"""


@given(
    st.integers(0, 200),
    st.integers(-1, 300),
    st.one_of(st.sampled_from([0, LEAST, -(2**31) - 5, 2**31, MOST - 200]), st.integers(-300, 300)),
)
def test_pieces_are_contiguous_few_and_complete(count: int, threads: int, lower: int) -> None:
    seen = chunks(lower, lower + count, threads)
    assert (seen[:, 2] == 1).all()
    begins = sorted(set(seen[:, 0].tolist()))
    ends = sorted(set(seen[:, 1].tolist()))
    assert len(begins) <= max(1, 32 * min(threads, count))
    if threads <= 1:
        assert len(begins) <= 1
    if count:
        assert begins == [lower, *ends[:-1]]
        assert ends[-1] == lower + count


def test_more_iterations_than_31_bits_count_run_once() -> None:
    """Whole pieces are counted here, not iterations: those of the loop do nothing."""
    source = """
struct context { int64_t *sum; };
static void body(const void *context, char *scratch, int64_t begin, int64_t end) {
  const struct context *c = context;
  __atomic_fetch_add(c->sum, end - begin, __ATOMIC_SEQ_CST);
}
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  struct context c = {buffers[0]};
  runtime->parallel_for(runtime, body, &c, scalars[0].i, scalars[1].i);
}
"""
    for lower, upper in ((0, 2**31), (-5, 2**31 + 7), (-(2**40), 2**40 + 1), (LEAST, LEAST + 2**62 + 3)):
        total = np.zeros(1, np.int64)
        many = kernel(source, 1, (ScalarType.INT64, ScalarType.INT64))
        assert many.launch((total.ctypes.data,), (lower, upper), 3) == 0
        assert total[0] == upper - lower


def test_a_thread_that_stands_still_delays_its_piece_only() -> None:
    for threads, count in ((2, 64), (3, 1000), (2, 2)):
        done = np.zeros(1, np.int64)
        assert kernel(STANDING, 1, (ScalarType.INT64,)).launch((done.ctypes.data,), (count,), threads) == 0
        assert done[0] == count


def test_an_empty_range_runs_nothing() -> None:
    assert chunks(5, 5, 4).size == 0


def test_threads_really_run_together() -> None:
    present = np.zeros(1, np.int64)
    for count in (2, 5):
        present[0] = 0
        assert kernel(TOGETHER, 1).launch((present.ctypes.data,), (), count) == 0
        assert present[0] == count


def test_nested_loops_run_inline() -> None:
    seen = np.zeros((41, 37), np.int32)
    assert kernel(NESTED, 1).launch((seen.ctypes.data,), (), 4) == 0
    assert (seen == 1).all()


def test_sixteen_threads_call_at_once() -> None:
    start = threading.Barrier(16)

    def call(number: int) -> None:
        x = ramp(1031 + number)
        start.wait()
        for _ in range(200):
            y = np.ones_like(x)
            axpy(2.0, x, y, 1 + number % 4)
            np.testing.assert_array_equal(y, 2.0 * x + 1.0)

    with ThreadPoolExecutor(16) as threads:
        for future in [threads.submit(call, number) for number in range(16)]:
            future.result(timeout=PATIENCE)


def test_the_same_bits_with_any_number_of_threads() -> None:
    generator = np.random.default_rng(7)
    x, y = (generator.standard_normal(1031).astype(np.float32) for _ in range(2))
    results = []
    for threads in (1, 2, 3, 16):
        result = y.copy()
        axpy(0.1, x, result, threads)
        results.append(result.tobytes())
    assert len(set(results)) == 1


def run(program: str) -> str:
    """Output of a Python program, which must end by itself."""
    command = (sys.executable, "-W", "ignore", "-c", program)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


FORK = """
import os, threading
import numpy as np
from tests.runtime.kernels import HEADER, TOGETHER, axpy, chunks, launch_all, kernel

def together():
    present = np.zeros(1, np.int64)
    assert kernel(TOGETHER, 1).launch((present.ctypes.data,), (), 2) == 0

launch_all((1031,), 2); together()
"""


def test_the_child_of_a_fork_computes_in_parallel() -> None:
    program = """
for generation in range(3):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        break
    launch_all((1031,), 2)
    together()
launch_all((1031,), 2)
together()
"""
    run(FORK + program)


def test_a_fork_during_the_call_of_another_thread() -> None:
    program = """
stop = threading.Event()
def call():
    while not stop.is_set():
        launch_all((100_003,), 2)
callers = [threading.Thread(target=call) for _ in range(2)]
for caller in callers: caller.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        launch_all((1031, 129), 2)
        together()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for caller in callers: caller.join()
"""
    run(FORK + program)


def test_workers_start_with_the_first_parallel_call_and_leave_signals_alone() -> None:
    program = """
import os, signal
from tests.runtime.kernels import launch_all
def threads(): return len(os.listdir("/proc/self/task"))
launch_all((129,), 1)
before = threads()
launch_all((129,), 3)
assert threads() == before + 2, threads()
newest = max(map(int, os.listdir("/proc/self/task")))
status = open(f"/proc/self/task/{newest}/status").read()
blocked = int(status.split("SigBlk:")[1].split()[0], 16)
assert blocked >> (signal.SIGINT - 1) & 1 and blocked >> (signal.SIGTERM - 1) & 1
"""
    run(program)


def test_idle_workers_sleep() -> None:
    """Each is put to sleep once by the system, and is not woken until there is work for it."""
    program = """
import os
from pathlib import Path
from tests.runtime.kernels import launch_all
from tests.waiting import wait_until

launch_all((1031,) * 10, 4)
workers = [task for task in Path("/proc/self/task").iterdir() if int(task.name) != os.getpid()]

def asleep():
    return all((worker / "stat").read_text().rpartition(")")[2].split()[0] == "S" for worker in workers)

def switches():
    lines = [line for worker in workers for line in (worker / "status").read_text().splitlines()]
    return [line for line in lines if "ctxt_switches" in line]

wait_until(asleep)
before = switches()
sum(range(3_000_000))
assert len(workers) >= 3 and asleep() and switches() == before, (before, switches())
"""
    run(program)


def test_generated_sources_declare_the_same_types() -> None:
    generated = (Path(tc.codegen.prelude.__file__).parent / "abi.h").read_text(encoding="utf-8")
    members = ("parallel_for", "pool", "threads", "fault", "shared", "scratch", "scratch_bytes")
    same = [f"offsetof(tc_runtime, {name}) == offsetof(other_runtime, {name})" for name in members]
    # The function's own parameter is a pointer to either structure.
    same += [f"SAME(((tc_runtime *)0)->{name}, ((other_runtime *)0)->{name})" for name in members[1:]]
    same += [f"offsetof(other_scalar, {name}) == 0" for name in "iudf"]
    same += [f"SAME(((tc_scalar *)0)->{name}, ((other_scalar *)0)->{name})" for name in "iudf"]
    source = f"""
#include <stddef.h>
{HEADER}
#define SAME(left, right) __builtin_types_compatible_p(__typeof__(left), __typeof__(right))
#define tc_scalar other_scalar
#define tc_runtime other_runtime
{generated}
#undef tc_scalar
#undef tc_runtime
_Static_assert(sizeof(tc_scalar) == sizeof(other_scalar) && sizeof(tc_runtime) == sizeof(other_runtime), "size");
"""
    source += "".join(f'_Static_assert({condition}, "{condition}");\n' for condition in same)
    compile_shared(source, SHARED, find_compiler(environment()))


def test_the_pool_is_built_once_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Environment.read({"XDG_CACHE_HOME": str(tmp_path)})
    first = native_binary("pool.c", settings)
    with monkeypatch.context() as without:
        without.setattr("tc.runtime.host.c_compiler.compile_shared", None)
        assert native_binary("pool.c", settings) == first


def test_without_a_compiler_there_is_a_reason() -> None:
    with pytest.raises(DeviceError, match="TC_CC names '/nowhere/cc'"):
        native_binary("pool.c", Environment(compiler="/nowhere/cc"))


def test_one_pool_per_process() -> None:
    assert shared_pool() is shared_pool()
