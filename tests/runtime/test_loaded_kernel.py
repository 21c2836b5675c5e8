"""Kernels are loaded from bytes and launched with packed arguments."""

from __future__ import annotations

import gc
import math
import resource
import threading
from pathlib import Path

import numpy as np
import pytest

from tc.base.errors import DeviceError
from tc.base.types import ScalarType
from tests.counting import calls
from tests.runtime.kernels import AXPY, AXPY_SCALARS, addresses, kernel, launch_all, load, ramp

SCALARS = """
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  int64_t *integers = buffers[0];
  double *floats = buffers[1];
  integers[0] = scalars[0].i, integers[1] = (int64_t)scalars[1].u, integers[2] = scalars[2].i;
  floats[0] = scalars[3].f, floats[1] = scalars[4].f, floats[2] = scalars[5].d;
}
"""
SCALAR_TYPES = (
    ScalarType.INT16,
    ScalarType.UINT64,
    ScalarType.BOOL,
    ScalarType.FLOAT32,
    ScalarType.BFLOAT16,
    ScalarType.FLOAT64,
)
FAULTY = """
static void body(const void *context, char *scratch, int64_t begin, int64_t end) {
  if (begin <= 90 && 90 < end) __atomic_store_n(*(int32_t *const *)context, 3, __ATOMIC_RELAXED);
}
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  runtime->parallel_for(runtime, body, &runtime->fault, 0, scalars[0].i);
}
"""
# Writes half of x to y.
HALVE = """
struct context { const float *x; float *y; };
static void body(const void *context, char *scratch, int64_t begin, int64_t end) {
  const struct context *c = context;
  for (int64_t i = begin; i < end; i++) c->y[i] = c->x[i] / 2;
}
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  struct context c = {buffers[0], buffers[1]};
  runtime->parallel_for(runtime, body, &c, 0, scalars[0].i);
}
"""
# Waits until another launch of it runs at the same time.
MEET = """
#include <time.h>
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  int64_t *present = buffers[0];
  time_t begin = time(0);
  __atomic_fetch_add(present, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(present, __ATOMIC_SEQ_CST) < 2)
    if (time(0) > begin + 900) { *runtime->fault = 1; return; }
}
"""


def entries(kind: str) -> int:
    """How many descriptors (fd) or threads (task) this process has."""
    return len(list(Path("/proc/self", kind).iterdir()))


def test_results_at_ragged_sizes() -> None:
    for threads in (1, 2, 3, 8):
        launch_all((0, 1, 2, 7, 129, 1031), threads)


def test_every_scalar_arrives_in_its_slot() -> None:
    integers, floats = np.zeros(3, np.int64), np.zeros(3)
    values = (-7, 2**64 - 1, True, 0.1, 1.5, 0.1)
    assert kernel(SCALARS, 2, SCALAR_TYPES).launch(addresses(integers, floats), values, 1) == 0
    assert integers.tolist() == [-7, -1, 1]
    assert floats.tolist() == [float(np.float32(0.1)), 1.5, 0.1]


def test_faults_are_returned_and_do_not_stay() -> None:
    faulty = kernel(FAULTY, 0, (ScalarType.INT64,))
    for threads in (1, 2, 7):
        assert [faulty.launch((), (count,), threads) for count in (90, 91, 90)] == [0, 3, 0]


def test_the_interpreter_runs_on_during_a_launch() -> None:
    meet, present, faults = kernel(MEET, 1), np.zeros(1, np.int64), []
    threads = [threading.Thread(target=lambda: faults.append(meet.launch(addresses(present), (), 1))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == [0, 0]


def test_subnormals_survive() -> None:
    smallest = np.array([1e-310])
    launch_all((129,), 2)
    assert (smallest * 0.5)[0] == 5e-311
    x, y = np.full(1031, 2.0**-140, np.float32), np.zeros(1031, np.float32)
    for threads in (1, 2):
        kernel(HALVE, 2, (ScalarType.INT64,)).launch(addresses(x, y), (1031,), threads)
        assert (y == np.float32(2.0**-141)).all()


def test_subnormals_are_kept_in_a_thread_that_flushes_them() -> None:
    torch = pytest.importorskip("torch")
    x, y = np.full(1031, 2.0**-140, np.float32), np.zeros(1031, np.float32)
    halve = kernel(HALVE, 2, (ScalarType.INT64,))

    def flushing() -> None:
        if not torch.set_flush_denormal(True):
            pytest.skip("this processor cannot flush subnormals")
        halve.launch(addresses(x, y), (1031,), 2)
        flushed.append(bool((x / 2 == 0).all()))

    flushed: list[bool] = []
    thread = threading.Thread(target=flushing)
    thread.start()
    thread.join()
    # The thread keeps its own setting; the kernel did not see it.
    assert flushed == [True]
    assert (y == np.float32(2.0**-141)).all()


def test_ten_thousand_launches_leak_nothing() -> None:
    def measure() -> tuple[int, int, int]:
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, entries("fd"), entries("task")

    launch_all((129,) * 1000, 2)
    before = measure()
    launch_all((129,) * 10_000, 2)
    after = measure()
    assert after[1:] == before[1:]
    assert after[0] - before[0] < 1024  # KiB; a byte lost per call would not show, an object would


def test_kernels_can_be_dropped_and_loaded_again() -> None:
    descriptors = entries("fd")
    for number in range(5):
        integers, floats = np.zeros(3, np.int64), np.zeros(3)
        loaded = load(SCALARS, 2, SCALAR_TYPES)
        loaded.launch(addresses(integers, floats), (number, 1, 0, 0.0, 0.0, math.inf), 1)
        assert integers.tolist() == [number, 1, 0]
        del loaded
        gc.collect()
    assert entries("fd") == descriptors


def test_different_libraries_do_not_become_one() -> None:
    body = "void tc_kernel(void *const *b, const tc_scalar *s, const tc_runtime *r) {{ *r->fault = {}; }}"
    kernels = [load(body.format(number), 0) for number in range(3)]
    assert [loaded.launch((), (), 1) for loaded in kernels] == [0, 1, 2]


def test_a_library_without_a_kernel_is_refused() -> None:
    with pytest.raises(DeviceError, match="exports no function 'tc_kernel'"):
        load("int x;", 0)


def test_a_launch_calls_few_functions() -> None:
    axpy, x, y = kernel(AXPY, 2, AXPY_SCALARS), ramp(8), ramp(8)
    places = addresses(x, y)
    assert calls(lambda: axpy.launch(places, (1.0, 8), 1)) <= 4
