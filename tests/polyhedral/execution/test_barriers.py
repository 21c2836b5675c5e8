"""Barriers: where they are needed the proof and the emulator both miss them, and nowhere do threads pass them apart."""

from __future__ import annotations

from unittest.mock import patch

import islpy as isl
import numpy as np
import pytest

import tc
from tc.polyhedral.gpu.barriers.place_barriers import place_barriers
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import ScheduleTree
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.mutants.judge import Given, Verdict, is_right, judge, mistakes
from tests.mutants.programs import case_named
from tests.turns import every, one_in

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


@one_in(2)
@pytest.mark.parametrize("name", every(4, PROGRAMS))
def test_every_barrier_is_needed_and_both_the_proof_and_the_emulator_miss_it(name: str) -> None:
    text, shapes, options = PROGRAMS[name]
    comprehension = tc.define(text).single()
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    given = Given(dict(zip(comprehension.program.arguments, arrays, strict=True)))
    assert is_right(comprehension, comprehension.compile(*arrays, target="emulator", options=options), given)
    found = [m for m in mistakes(text, comprehension.name, given, options) if "barrier" in m.name]
    assert found
    for mistake in found:
        assert judge(text, comprehension.name, given, options, mistake) == Verdict(refused=True, wrong=True)


@pytest.mark.parametrize("tile", [(3,), (3, 16)], ids=["tiles of columns", "tiles of columns and of all rows"])
@pytest.mark.parametrize("stages", [None, 1, 3])
def test_blocks_that_take_turns_copy_ahead_for_their_own_tiles(tile: tuple[int, ...], stages: int | None) -> None:
    """Blocks are at every third tile, and some threads are beyond the last column: all of them meet in every loop."""
    columns = tc.define("def columns(float(N) C, float(N,M) A) -> (B) { B(j) +=! C(i) * A(i,j) }").columns
    generator = np.random.default_rng(1)
    inputs = {"C": generator.standard_normal(2, np.float32), "A": generator.standard_normal((2, 40), np.float32)}
    schedule = tc.ScheduleOptions(tile=tile, fusion=tc.Fusion.MINIMAL)
    options = tc.GpuOptions(schedule, grid=(3,), stages=stages)
    assert is_right(columns, columns.compile(*inputs.values(), target="emulator", options=options), Given(inputs))


def test_the_instances_of_barriers_are_said_in_as_few_conditions_as_possible() -> None:
    """Vectors of copies are in tiles that isl describes by their points: each proof multiplied the pieces by seven."""
    case = case_named("wavenet_two_layers")
    inputs = case.make_inputs(np.random.default_rng(0), case.large_ragged_sizes)
    found: list[isl.Set] = []

    class PlacedError(Exception):
        """The proof is not to go on for hours."""

    def looked_at(tree: ScheduleTree, scop: Scop, **how: bool) -> tuple[ScheduleTree, Scop]:
        found.extend(place_barriers(tree, scop, **how)[1].barriers)
        raise PlacedError

    options = tc.GpuOptions(tc.ScheduleOptions(tile=(4, 4, 3)), block=(2, 4), stages=3, register_accumulators=0)
    with patch("tc.polyhedral.grid_passes.place_barriers", looked_at), pytest.raises(PlacedError):
        tc.define(case.text).single().compile(*inputs.values(), target="emulator", options=options)
    assert found
    assert all(barrier.n_basic_set() == 1 for barrier in found)


# The last tile has fewer rows, so that loops over threads end at a minimum: outside of all barriers, or around all.
RAGGED = {
    "a minimum": (
        "def f(float(M,N) A, float(K,N) B) -> (O) { O(m,n) min=! B(r,n) + A(m,n) where r in 0:K, m - r in 0:K }",
        ((9, 4), (4, 4)),
        tc.GpuOptions(),
    ),
    "a product": (
        "def f(float(M,N) B) -> (O) { O(m,n) +=! B(M-1-m,r) * B(q,r) where q in 0:M, n in 0:N, r in 0:N, r+m in 1:6 }",
        ((9, 4),),
        tc.GpuOptions(),
    ),
    "a sum of sums": (
        "def f(float(K,N) A) -> (O) { T(k,n) +=! A(r,n) where k in 0:K, r in 0:K, r - n in 0:2  O() +=! T(i,j) }",
        ((21, 33),),
        tc.GpuOptions(),
    ),
    "a remainder": (  # isl takes 12 for the last thread; it is 11
        "def f(int32(N) A, int32(M) B) -> (O, P) { O(i/2) = A(i) where i in 0:N, i % 2 == 1  P(i/2) +=! B(i) }",
        ((14,), (4,)),
        tc.GpuOptions(),
    ),
    "a triangle": (  # copies in vectors, the last of which is cut
        "def f(int32(K) S) -> (O) { O(k) +=! (r < k) ? S(r) : 0 where k in 0:K+1 }",
        ((4,),),
        tc.GpuOptions(
            tc.ScheduleOptions(tile=(3, 5), unroll=4, fusion=tc.Fusion.MAXIMAL, scans=False),
            block=(3,),
            grid=(2,),
            distribution=tc.Distribution.BLOCKED,
        ),
    ),
}


@one_in(2)
@pytest.mark.parametrize("name", RAGGED)
def test_no_guard_that_threads_differ_in_stands_around_a_barrier(name: str) -> None:
    text, shapes, options = RAGGED[name]
    comprehension = tc.define(text).single()
    generator = np.random.default_rng(0)
    types = [comprehension.program.tensor(argument).type for argument in comprehension.program.arguments]
    arrays = [generator.integers(-3, 4, s).astype(numpy_dtype(t)) for s, t in zip(shapes, types, strict=True)]
    kernel = comprehension.compile(*arrays, target="emulator", options=options)
    assert is_right(comprehension, kernel, Given(dict(zip(comprehension.program.arguments, arrays, strict=True))))
    assert "__syncthreads" in comprehension.compile(*arrays, target="cuda:sm_90", options=options).source
