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
