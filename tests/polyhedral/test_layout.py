"""How operands lie in shared memory."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.gpu_cases import run
from tests.translated import translated
from tests.turns import every_row, one_in

MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
SCHEDULE = tc.ScheduleOptions(tile=(16, 24, 8))


def options(layout: tc.TileLayout, padding: int = 4, stages: int = 1) -> tc.GpuOptions:
    return tc.GpuOptions(SCHEDULE, block=(8, 4), layout=layout, padding=padding, stages=stages)


def bytes_of(text: str, *shapes: tuple[int, ...], own: tc.GpuOptions) -> int:
    (grid,) = tc.define(text).single().compile(*shapes, target="cuda:sm_90", options=own).resources.grids
    return lines(grid.shared // 4)


def lines(count: int) -> int:
    """Bytes of so many floats, up to the end of a line."""
    return -(-count * 4 // 64) * 64


@one_in(2)
@pytest.mark.parametrize("padding", [0, 1, 4])
def test_rows_are_those_of_the_tensor_or_of_a_step(padding: int) -> None:
    shapes = ((64, 40), (40, 96))
    second = lines(8 * (24 + padding))
    in_memory = bytes_of(MM, *shapes, own=options(tc.TileLayout.MEMORY, padding))
    assert in_memory == lines(16 * (8 + padding)) + second
    by_points = bytes_of(MM, *shapes, own=options(tc.TileLayout.POINTS, padding))
    assert by_points == lines(8 * (16 + padding)) + second


def test_neighbours_in_memory_are_apart_where_points_lie_side_by_side() -> None:
    mm = tc.define(MM).mm
    shapes = ((64, 40), (40, 96))
    for layout, most in ((tc.TileLayout.MEMORY, {"A": 16, "B": 16}), (tc.TileLayout.POINTS, {"A": 4, "B": 16})):
        source = translated(mm, *shapes, target="cuda:sm_90", options=options(layout, stages=2)).source.text
        copies = re.findall(r"tc_copy_\w+<(?:aligned, true, )?(\d+)>\(&t_shared\d_(\w)", source)
        assert {name: max(int(size) for size, own in copies if own == name) for _, name in copies} == most


@one_in(2)
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize(
    ("text", "shapes"),
    every_row(
        2,
        [
            (MM, ((37, 29), (29, 50))),
            ("def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }", ((37, 29), (50, 29))),
            (
                "def conv(float(B,C,W) I, float(F,C,K) W1) -> (O) { O(b,f,w) +=! I(b,c,w+k) * W1(f,c,k) }",
                ((3, 5, 40), (7, 5, 3)),
            ),
            ("def turn(float(M,N) X) -> (Y) { Y(n,m) = X(m,n) }", ((37, 50),)),
        ],
    ),
)
def test_values_are_those_of_the_definition(text: str, shapes: tuple[tuple[int, ...], ...], stages: int) -> None:
    definition = tc.define(text).single()
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape, np.float32) for shape in shapes]
    own = options(tc.TileLayout.POINTS, stages=stages)
    (found,) = run(definition, tuple(arrays), None, own, "emulator")
    (expected,) = definition.oracle(*arrays).values()
    assert compare(expected, np.asarray(found)).ok


def test_what_is_no_layout_is_refused() -> None:
    with pytest.raises(tc.OptionsError, match=r"^layout must be a tc\.TileLayout, got 'points'$"):
        tc.GpuOptions(layout="points")  # type: ignore[arg-type]
