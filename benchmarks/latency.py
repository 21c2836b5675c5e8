"""How long a user waits: for the import, for a definition, for a translation, for a warm call, for the cache."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Final

import numpy as np

import tc
from benchmarks.cache_latency import report_cache
from benchmarks.measuring.timing import machine, measure
from benchmarks.problems.blocks import BLOCKS
from benchmarks.proofs import Definition
from tc.base.environment import environment
from tc.compiler import build, translate
from tc.targets.target import parse_target

MATMUL = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"

# From the text to the binary; the others are of one statement.
_ATTENTION: Final = """
def attention(float(B,N,D) Q, float(B,M,D) K, float(B,M,D) V) -> (O) {
    S(b,i,j) +=! Q(b,i,d) * K(b,j,d)
    L(b,i) max=! S(b,i,j)
    E(b,i,j) = exp(S(b,i,j) - L(b,i))
    Z(b,i) +=! E(b,i,j)
    O(b,i,d) +=! E(b,i,j) * V(b,j,d) / Z(b,i)
}"""
KERNELS: Final = (
    Definition("add", "def add(float(N) a, float(N) b) -> (c) { c(i) = a(i) + b(i) }", ((1 << 20,), (1 << 20,))),
    Definition("sum", "def sum(float(M,N) a) -> (c) { c(i) +=! a(i,j) }", ((2048, 2048),)),
    Definition("mm", MATMUL, ((512, 512), (512, 512))),
    Definition(
        "tmm", "def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }", ((128, 1024), (1024, 1024))
    ),
    Definition("attention", _ATTENTION, ((16, 256, 64),) * 3),
)
_MILLISECONDS: Final = {"attention": 400}

# Milliseconds for `import tc` in a process that has NumPy already; it fails if a heavy package came along.
_IMPORT = """
import sys, time, numpy
started = time.perf_counter()
import tc
print((time.perf_counter() - started) * 1e3)
heavy = [name for name in ("islpy", "lark", "scipy", "sqlalchemy", "torch") if name in sys.modules]
assert not heavy, heavy
"""


def import_time(rounds: int = 7) -> float:
    """Median seconds of ``import tc`` on top of NumPy's own import, in fresh processes."""
    command = [sys.executable, "-c", _IMPORT]
    outputs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(rounds)]
    return statistics.median(float(output) for output in outputs) / 1e3


def report() -> None:
    """Print every latency with its target."""
    print(machine())
    print(f"{'import tc, on top of NumPy':44} {import_time() * 1e3:10.1f} ms   (target < 60 ms)")
    print(f"{'define mm, warm':44} {measure(lambda: tc.define(MATMUL)).median * 1e3:10.2f} ms   (target < 5 ms)")

    target = parse_target("cpu")
    spec = tc.ArraySpec((1024, 1024), tc.ScalarType.FLOAT32)

    def text_to_source() -> str:
        comprehension = tc.define(MATMUL).single()
        return translate(comprehension.specialize(spec, spec), tc.CpuOptions(), target).source.text

    seconds = measure(text_to_source, at_least=0.0).median
    print(f"{'text to source, mm 1024^3, no C compiler':44} {seconds * 1e3:10.1f} ms   (target < 150 ms)")

    report_kernels()
    report_blocks()
    mm = tc.define(MATMUL).mm
    a, b = (np.ones((8, 8), np.float32) for _ in range(2))
    call, add = measure(lambda: mm(a, b)).median, measure(lambda: np.add(a, b)).median
    print(f"{'warm call of mm, 8x8':44} {call * 1e6:10.2f} us   (target < 10 us)")
    print(f"{'np.add, 8x8':44} {add * 1e6:10.2f} us")
    report_cuda()
    report_cache()


def report_kernels(rounds: int = 5) -> None:
    """Print what kernels take from the text to the binary, without a cache, at the least."""
    for kernel in KERNELS:
        least = min(_first_kernel(kernel) for _ in range(rounds + 1))  # the first one imports what is needed
        wanted = _MILLISECONDS.get(kernel.name, 150)
        print(f"{'text to binary, ' + kernel.name:50} {least * 1e3:6.0f} ms   (target < {wanted} ms)")


def _first_kernel(kernel: Definition) -> float:
    started = time.perf_counter()
    comprehension = tc.define(kernel.text).single()
    arrays = [tc.ArraySpec(shape, tc.ScalarType.FLOAT32) for shape in kernel.shapes]
    program = comprehension.specialize(*arrays)
    build(program, comprehension.interface, tc.CpuOptions(), parse_target("cpu"), environment())
    return time.perf_counter() - started


def report_blocks(rounds: int = 5) -> None:
    """Print what scheduling and proving blocks of eleven statements takes of the processor's time, at the least."""
    for block in BLOCKS:
        least = min(_processor_time(block) for _ in range(rounds))
        print(f"{'block to source and proof, ' + block.name:50} {least * 1e3:6.0f} ms   (target < 300 ms)")


def _processor_time(block: Definition) -> float:
    specialization = tc.define(block.text).single().specialize(*block.shapes)
    started = time.process_time()
    translate(specialization, tc.CpuOptions(), parse_target("cpu:x86-64-v4"))
    return time.process_time() - started


def report_cuda() -> None:
    """Print what calls on a GPU take of this machine's time; nothing where there is none."""
    if not tc.targets()["cuda"].startswith("available"):
        return
    mm = tc.define(MATMUL).mm
    a, b = (tc.to_device(np.ones((8, 8), np.float32)) for _ in range(2))
    out = mm(a, b)
    call = _submission(lambda: mm(a, b, out=out))
    print(f"{'warm call of mm, 8x8, on a GPU, out=':44} {call:10.2f} us   (target < 15 us)")


def _submission(run: Callable[[], object]) -> float:
    """Microseconds until a call has been handed to a GPU; so few at a time that none waits for those before."""
    times = []
    for _ in range(50):
        tc.synchronize()
        started = time.perf_counter()
        for _ in range(50):
            run()
        times.append((time.perf_counter() - started) / 50)
    tc.synchronize()
    return statistics.median(times) * 1e6
