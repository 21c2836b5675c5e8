"""Barriers: where they are needed the proof and the emulator both miss them, and nowhere do threads pass them apart."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tests.mutants.judge import Verdict, is_right, judge, mistakes

MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
CONVOLUTION = """
def conv(float(N,C,H,W) X, float(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! X(n,c,h+p,w+q) * K(f,c,p,q) }
"""
CHAIN = """
def chain(float(M,K) A, float(K,N) B, float(N,P) D) -> (C, E) {
  C(m,n) +=! A(m,k) * B(k,n)
  E(m,p) +=! C(m,n) * D(n,p)
}
"""
SUMS = "def sums(float(M,N) X, float(N) y) -> (O) { O(m) +=! X(m,n) * y(n) }"
PROGRAMS: dict[str, tuple[str, tuple[tuple[int, ...], ...], tc.GpuOptions]] = {
    "mm": (MM, ((37, 19), (19, 21)), tc.GpuOptions(tc.ScheduleOptions(tile=(8, 16, 4)), block=(8, 4), stages=1)),
    "mm, one tile after another": (
        MM,
        ((37, 19), (19, 21)),
        tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4)), block=(8, 4), grid=(1, 2), stages=1),
    ),
    "convolution": (
        CONVOLUTION,
        ((2, 3, 9, 11), (4, 3, 3, 3)),
        tc.GpuOptions(tc.ScheduleOptions(tile=(1, 2, 4, 8)), block=(8, 4, 2), stages=1),
    ),
    "chain": (
        CHAIN,
        ((17, 9), (9, 13), (13, 11)),
        tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4), fusion=tc.Fusion.MAXIMAL), block=(4,), stages=1),
    ),
    "sums": (SUMS, ((37, 50), (50,)), tc.GpuOptions(tc.ScheduleOptions(tile=(16, 8)), block=(8,), stages=1)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_barrier_is_needed_and_both_the_proof_and_the_emulator_miss_it(name: str) -> None:
    text, shapes, options = PROGRAMS[name]
    comprehension = tc.define(text).single()
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    inputs = dict(zip(comprehension.program.arguments, arrays, strict=True))
    assert is_right(comprehension, comprehension.compile(*arrays, target="emulator", options=options), inputs)
    found = [m for m in mistakes(text, comprehension.name, inputs, options) if "barrier" in m.name]
    assert found
    for mistake in found:
        assert judge(text, comprehension.name, inputs, options, mistake) == Verdict(refused=True, wrong=True)


@pytest.mark.parametrize("tile", [(3,), (3, 16)], ids=["tiles of columns", "tiles of columns and of all rows"])
@pytest.mark.parametrize("stages", [None, 1, 3])
def test_blocks_that_take_turns_copy_ahead_for_their_own_tiles(tile: tuple[int, ...], stages: int | None) -> None:
    """Blocks are at every third tile, and some threads are beyond the last column: all of them meet in every loop."""
    columns = tc.define("def columns(float(N) C, float(N,M) A) -> (B) { B(j) +=! C(i) * A(i,j) }").columns
    generator = np.random.default_rng(1)
    inputs = {"C": generator.standard_normal(2, np.float32), "A": generator.standard_normal((2, 40), np.float32)}
    schedule = tc.ScheduleOptions(tile=tile, fusion=tc.Fusion.MINIMAL)
    options = tc.GpuOptions(schedule, grid=(3,), stages=stages)
    assert is_right(columns, columns.compile(*inputs.values(), target="emulator", options=options), inputs)
