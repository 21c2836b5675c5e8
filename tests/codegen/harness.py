"""Compiles generated sources and runs them: one process, no runtime, parallel loops in uneven chunks."""

from __future__ import annotations

import ctypes
import struct
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import numpy as np

from tc.base.types import Kind, ScalarType
from tc.codegen.index.placement import ALIGNMENT
from tc.codegen.printer.source import c_source
from tc.language.program.program import Expression
from tc.polyhedral.ir.loops import LoopProgram
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.codegen.build import buffer, pointwise

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

FLAGS: Final = (
    "-std=gnu11", "-O3", "-march=native", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd",
    "-ffp-contract=fast", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
)  # fmt: skip

# Runs chunks of 3 iterations, the last chunk first, as the threads of a pool might.
_RUNTIME: Final = """
static void run_in_chunks(const tc_runtime *runtime, void (*body)(const void *, char *, int64_t, int64_t),
                          const void *context, int64_t lower, int64_t upper) {
  for (int64_t chunk = (upper - lower + 2) / 3 - 1; chunk >= 0; chunk--) {
    int64_t begin = lower + 3 * chunk;
    body(context, runtime->scratch, begin, begin + 3 < upper ? begin + 3 : upper);
  }
}

int32_t run(void *const *buffers, const tc_scalar *scalars, void *shared, void *scratch) {
  int32_t fault = 0;
  const tc_runtime runtime = {run_in_chunks, 0, 2, &fault, shared, scratch, 0};
  tc_kernel(buffers, scalars, &runtime);
  return fault;
}
"""

# Of the plainest processor that the tests run on.
VECTOR_BYTES = 16


def compile_c(text: str, *flags: str) -> ctypes.CDLL:
    """Compiles a source to a library and loads it."""
    return _compiled(text, (*FLAGS, *flags))


@cache
def _compiled(text: str, flags: tuple[str, ...]) -> ctypes.CDLL:
    with TemporaryDirectory() as folder:
        source, library = Path(folder) / "kernel.c", Path(folder) / f"{sha256(text.encode()).hexdigest()[:16]}.so"
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["gcc", *flags, str(source), "-o", str(library), "-lm"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[:3000]
        return ctypes.CDLL(str(library))


def run(program: LoopProgram, arrays: Mapping[str, Array], scalars: Sequence[int | float] = (), *flags: str) -> int:
    """Runs a kernel on arrays whose layouts are the program's, in place, and returns its fault.

    Its temporaries and packed operands lie in memory that is full of NaN and large numbers, with guards around it.
    """
    source = c_source(program, VECTOR_BYTES)
    library = compile_c(source.text + _RUNTIME, *flags)
    for expected in program.buffers:
        array = arrays[expected.name]
        strides = tuple(step // array.itemsize for step in array.strides)
        assert (array.shape, strides) == (expected.layout.shape, expected.layout.strides), expected.name
        assert array.dtype.name == str(expected.layout.type), expected.name
    addresses = (ctypes.c_void_p * len(program.buffers))(*(arrays[b.name].ctypes.data for b in program.buffers))
    slots = b"".join(slot(value, type) for value, (_, type) in zip(scalars, program.scalars, strict=True))
    shared, scratch = _guarded(source.shared_bytes), _guarded(source.scratch_bytes)
    fault = library.run(
        addresses,
        ctypes.create_string_buffer(slots, len(slots) + 1),
        ctypes.c_void_p(shared.ctypes.data + ALIGNMENT),
        ctypes.c_void_p(scratch.ctypes.data + ALIGNMENT),
    )
    for memory in (shared, scratch):
        assert (memory[:ALIGNMENT] == 0xFF).all()
        assert (memory[-ALIGNMENT:] == 0xFF).all()
    return int(fault)


def _guarded(size: int) -> Array:
    """``size`` bytes, aligned, between two guards; all bits of everything are set."""
    block = np.full(size + 3 * ALIGNMENT, 0xFF, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    return block[start : start + size + 2 * ALIGNMENT]


def slot(value: int | float, type: ScalarType) -> bytes:
    match type.kind:
        case Kind.FLOATING:
            return struct.pack("d", value) if type is ScalarType.FLOAT64 else struct.pack("f4x", value)
        case Kind.UNSIGNED:
            return struct.pack("Q", value)
        case _:
            return struct.pack("q", value)


def evaluate(values: Mapping[str, Expression], inputs: Mapping[str, Array], *flags: str) -> dict[str, Array]:
    """Values as functions of one-dimensional inputs of one length, read at iterator ``i``, element by element."""
    extent = len(next(iter(inputs.values())))
    buffers = [buffer(name, ScalarType(array.dtype.name), extent) for name, array in inputs.items()]
    outputs = {name: np.zeros(extent, dtype_of(value.type)) for name, value in values.items()}
    assert run(pointwise(values, buffers, extent), {**inputs, **outputs}, (), *flags) == 0
    return outputs


def dtype_of(scalar_type: ScalarType) -> np.dtype[Any]:
    """NumPy's name of a scalar type."""
    return numpy_dtype(scalar_type)
