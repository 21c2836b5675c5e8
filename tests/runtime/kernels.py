"""Small hand-written kernels in the form that code generation emits."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tc.environment import environment
from tc.runtime.compiler import compile_shared, find_compiler, kernel_flags
from tc.runtime.kernel import LoadedKernel, load_kernel
from tc.runtime.pool import shared_pool
from tc.target import parse_target
from tc.types import ScalarType

HEADER = (Path(__file__).parents[2] / "tc/runtime/pool.h").read_text(encoding="utf-8")

# Adds a times x to y.
AXPY = """
struct context { float a; const float *x; float *y; };
static void body(const void *context, int64_t begin, int64_t end) {
  const struct context *c = context;
  for (int64_t i = begin; i < end; i++) c->y[i] = c->a * c->x[i] + c->y[i];
}
void tc_kernel(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime) {
  struct context c = {scalars[0].f, buffers[0], buffers[1]};
  runtime->parallel_for(runtime->pool, body, &c, 0, scalars[1].i, runtime->threads);
}
"""


@functools.cache
def kernel(body: str, buffers: int, scalars: tuple[ScalarType, ...] = ()) -> LoadedKernel:
    """``body`` compiled for this machine and loaded, once per process."""
    binary = compile_shared(HEADER + body, kernel_flags(parse_target("cpu")), find_compiler(environment()))
    return load_kernel(binary, buffers, scalars, shared_pool())


def addresses(arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
    return tuple(array.ctypes.data for array in arrays)
