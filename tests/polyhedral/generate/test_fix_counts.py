"""Loops over a thread's own array are unrolled, wherever they begin and end, so that the array lies in registers."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tests.mutants.judge import Given, is_right
from tests.turns import every, every_row

TRIANGLE = """
def triangle(float(N,K) A) -> (C) {{
  C(i,j) = 0.0 where i in 0:N, j in 0:N
  C(i,j) += A(i,k) * A(j,k) where i in 0:N, j in {columns}
}}
"""
LOWER, UPPER = (tc.define(TRIANGLE.format(columns=columns)).triangle for columns in ("0:i+1", "i:N"))
OPTIONS = tc.GpuOptions(tc.ScheduleOptions(tile=(16, 16, 8)), block=(8, 4))


@pytest.mark.parametrize(
    ("triangle", "options"),
    every_row(3, [(LOWER, OPTIONS), (LOWER, tc.GpuOptions()), (UPPER, OPTIONS), (UPPER, tc.GpuOptions())]),
)
def test_triangles_are_kept_in_registers(triangle: tc.Comprehension, options: tc.GpuOptions) -> None:
    kernel = triangle.compile((129, 40), target="cuda:sm_90", options=options)
    assert "t_private" in kernel.source
    assert all(grid.stack == 0 for grid in kernel.resources.grids)


@pytest.mark.parametrize("triangle", every(2, [UPPER, LOWER]))
def test_triangles_are_right_on_ragged_tiles(triangle: tc.Comprehension) -> None:
    inputs = {"A": np.random.default_rng(0).standard_normal((37, 19), np.float32)}
    assert is_right(triangle, triangle.compile(inputs["A"], target="emulator", options=OPTIONS), Given(inputs))
