"""Small hand-written kernels in the form that code generation emits."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import tc.codegen.prelude
import tc.runtime.host.pool
from tc.base.environment import environment
from tc.base.types import ScalarType
from tc.runtime.host.c_compiler import compile_shared, find_compiler, kernel_flags
from tc.runtime.host.pool import shared_pool
from tc.runtime.loaded_kernel import LoadedKernel, Memory, load_kernel
from tc.targets.target import parse_cpu_target

HEADER = (Path(tc.runtime.__file__).parent / "pool.h").read_text(encoding="utf-8")

NOTHING = Memory()

# Adds a times x to y.
AXPY = """
struct context { float a; const float *x; float *y; };
static void body(const void *context, char *scratch, int64_t begin, int64_t end) {
  const struct context *c = context;
  for (int64_t i = begin; i < end; i++) c->y[i] = c->a * c->x[i] + c->y[i];
}
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  struct context c = {scalars[0].f, buffers[0], buffers[1]};
  runtime->parallel_for(runtime, body, &c, 0, scalars[1].i);
}
"""
AXPY_SCALARS = (ScalarType.FLOAT32, ScalarType.INT64)

# Writes, for every i of lower <= i < upper, begin and end of the chunk that ran it, and how often it ran.
CHUNKS = """
struct context { int64_t lower; int64_t (*seen)[3]; };
static void body(const void *context, char *scratch, int64_t begin, int64_t end) {
  const struct context *c = context;
  for (int64_t i = begin; i < end; i++) {
    int64_t *seen = c->seen[(uint64_t)i - (uint64_t)c->lower];
    seen[0] = begin, seen[1] = end, seen[2] += 1;
  }
}
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  struct context c = {scalars[0].i, buffers[0]};
  runtime->parallel_for(runtime, body, &c, scalars[0].i, scalars[1].i);
}
"""
CHUNKS_SCALARS = (ScalarType.INT64, ScalarType.INT64)


def load(body: str, buffers: int, scalars: tuple[ScalarType, ...] = (), memory: Memory = NOTHING) -> LoadedKernel:
    """``body`` compiled for this machine and loaded."""
    compiler = find_compiler(environment())
    binary = compile_shared(HEADER + body, kernel_flags(parse_cpu_target("cpu"), compiler), compiler)
    return load_kernel(binary, buffers, scalars, shared_pool(), memory)


kernel = functools.cache(load)


def addresses(*arrays: np.ndarray) -> tuple[int, ...]:
    return tuple(array.ctypes.data for array in arrays)


def axpy(a: float, x: np.ndarray, y: np.ndarray, threads: int) -> None:
    """``y += a * x`` for contiguous float32 vectors."""
    assert kernel(AXPY, 2, AXPY_SCALARS).launch(addresses(x, y), (a, len(x)), threads) == 0


def chunks(lower: int, upper: int, threads: int) -> np.ndarray:
    """Per iteration its chunk's begin and end, and how often it ran."""
    seen = np.zeros((upper - lower, 3), np.int64)
    assert kernel(CHUNKS, 1, CHUNKS_SCALARS).launch(addresses(seen), (lower, upper), threads) == 0
    return seen


def ramp(size: int) -> np.ndarray:
    """Small whole numbers, exact in every float type."""
    return (np.arange(size) % 64).astype(np.float32)


def launch_all(sizes: Sequence[int], threads: int) -> None:
    """Runs ``axpy`` at every size and checks it."""
    for size in sizes:
        x, y = ramp(size), np.ones(size, np.float32)
        axpy(2.0, x, y, threads)
        np.testing.assert_array_equal(y, 2.0 * x + 1.0)


# Fills the memory of the call and of every chunk with its own mark, waits for the others, and looks whether it stayed.
MARKS = """
#include <sched.h>
#include <string.h>
struct context { const tc_runtime *runtime; int64_t mark; int64_t shared; int32_t present; };
static int same(const char *memory, char value, int64_t size) {
  for (int64_t i = 0; i < size; i++) if (memory[i] != value) return 0;
  return 1;
}
static void body(const void *argument, char *scratch, int64_t begin, int64_t end) {
  struct context *c = (struct context *)argument;
  char value = (char)(c->mark + 1 + begin);
  int64_t size = c->runtime->scratch_bytes;
  memset(scratch, value, size);
  __atomic_fetch_add(&c->present, (int32_t)(end - begin), __ATOMIC_SEQ_CST);
  // Whoever has several iterations runs them one after another.
  if (end - begin == 1)
    while (__atomic_load_n(&c->present, __ATOMIC_SEQ_CST) < c->runtime->threads) sched_yield();
  if (!same(scratch, value, size)) __atomic_store_n(c->runtime->fault, 1, __ATOMIC_RELAXED);
}
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  struct context c = {runtime, scalars[0].i, scalars[1].i, 0};
  memset(runtime->shared, (char)c.mark, c.shared);
  runtime->parallel_for(runtime, body, &c, 0, runtime->threads);
  if (!same(runtime->shared, (char)c.mark, c.shared)) *runtime->fault = 2;
  if ((uintptr_t)runtime->shared % 64 || (uintptr_t)runtime->scratch % 64) *runtime->fault = 3;
}
"""


def marks(memory: Memory) -> LoadedKernel:
    return load(MARKS, 0, (ScalarType.INT64, ScalarType.INT64), memory)


# Every chunk waits for all others: only as many threads as chunks can run it.
TOGETHER = """
#include <time.h>
struct context { int64_t *present; int64_t chunks; int32_t *fault; };
static void body(const void *context, char *scratch, int64_t begin, int64_t end) {
  const struct context *c = context;
  time_t start = time(0);
  __atomic_fetch_add(c->present, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(c->present, __ATOMIC_SEQ_CST) < c->chunks)
    if (time(0) > start + 900) { __atomic_store_n(c->fault, 1, __ATOMIC_RELAXED); return; }
}
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  struct context c = {buffers[0], runtime->threads, runtime->fault};
  runtime->parallel_for(runtime, body, &c, 0, runtime->threads);
}
"""
