"""Rows of scans that are carried side by side."""

from __future__ import annotations

import pytest

import tc

ROWS = "def f(float(M,N) x) -> (y) { y(m,i) +=! x(m,j) where i in 0:N, j in 0:i+1 }"
COLUMNS = "def f(float(M,N) x) -> (y) { y(i,n) +=! x(j,n) where i in 0:M, j in 0:i+1 }"


@pytest.mark.parametrize(
    ("text", "shape", "tile"),
    [
        (ROWS, (64, 100), (8,)),
        (ROWS, (7, 100), (4,)),
        (ROWS, (3, 100), ()),
        (ROWS, (64, 10_000), ()),  # memory is slower than additions that wait
        (COLUMNS, (100, 64), (16,)),  # in lanes
    ],
)
def test_rows_do_not_wait_for_each_other(text: str, shape: tuple[int, int], tile: tuple[int, ...]) -> None:
    kernel = tc.define(text).f.compile(shape, target="cpu:x86-64-v3")
    assert isinstance(kernel.options, tc.CpuOptions)
    found = [decision.taken for decision in kernel.decisions if decision.option == "register_tile"]
    assert found in ([tile], [tile, ()], [(), tile]) or (not tile and not found), found
