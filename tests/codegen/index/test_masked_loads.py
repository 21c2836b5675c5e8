"""Loops whose iterations read between each other on a condition stay out of vectors: GCC 12 loads with wrong masks."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tests.turns import every_row

BARRIER = '__asm__ volatile("");'
SELECT = "def f({type}(N,M) A, {type}(K) b) -> (y) {{ y(i,n) +=! (i - 1 >= 0 ? A(i,n) : 0) * b(k) }}"


@pytest.mark.parametrize(
    ("type", "tile", "vectorize", "target"),
    every_row(
        4,
        [
            (type, tile, vectorize, target)
            for type in ("float", "double")
            for tile in ((), (3,), (2,))
            for vectorize in (False, True)
            for target in ("cpu", "emulator")
        ],
    ),
)
def test_conditional_reads_of_short_rows(type: str, tile: tuple[int, ...], vectorize: bool, target: str) -> None:
    f = tc.define(SELECT.format(type=type)).single()
    options: tc.CpuOptions | tc.GpuOptions = tc.GpuOptions()
    if target == "cpu":
        options = tc.CpuOptions(tc.ScheduleOptions(unroll=7), register_tile=tile, vectorize=vectorize)
    dtype = np.dtype("f4" if type == "float" else "f8")
    for rows in (3, 4, 9, 17):
        a, b = np.arange(3.0 * rows).reshape(rows, 3).astype(dtype) + 1, np.array([1, -1.5], dtype)
        wanted = a * b.sum()
        wanted[0] = 0
        np.testing.assert_allclose(np.asarray(f(a, b, target=target, options=options)), wanted, rtol=1e-6)


def test_such_loops_have_a_barrier_for_the_compiler() -> None:
    options = tc.CpuOptions(tc.ScheduleOptions(unroll=7), register_tile=(3,), vectorize=False)
    shapes = ((9, 3), (2,))
    assert BARRIER in tc.define(SELECT.format(type="double")).single().compile(*shapes, options=options).source
    # Nothing is read on a condition, or what is lies side by side in neighbouring iterations.
    for text, given in (
        ("def f(double(N,M) A, double(K) b) -> (y) { y(i,n) +=! A(i,n) * b(k) }", shapes),
        ("def f(double(N) x) -> (y) { y(n) = n >= 1 ? x(n-1) : 0 where n in 0:N }", ((99,),)),
    ):
        assert BARRIER not in tc.define(text).single().compile(*given).source


def test_sums_side_by_side_stay_in_their_lanes() -> None:
    """With AVX2, GCC 12 made one vector of the sums of a row and added them up in other lanes than their own."""
    text = """
    def f(int64(N,N) B, uint32(N) R) -> (O) {
        C(j,i) *=! B(i,j)
        O(k,j) +=! C(i,j) where i in 0:R(k)
    }"""
    f, rng = tc.define(text).single(), np.random.default_rng(0)
    for tile in ((4, 16), (4, 4), None):
        schedule = tc.ScheduleOptions(unroll=16)
        options = tc.CpuOptions(schedule=schedule, register_tile=tile, vector_axis=None if tile is None else 0)
        for size in (4, 5, 8, 9):
            arguments = rng.integers(-9, 9, (size, size)), rng.integers(0, size + 1, size).astype(np.uint32)
            np.testing.assert_array_equal(f(*arguments, options=options), f.reference(*arguments))
