"""How blocks and threads share kernels that nobody has tuned."""

from __future__ import annotations

import re

import pytest

import tc

TMM = "def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }"
TBMM = "def tbmm(float(B,N,M) X, float(B,K,M) Y) -> (Z) { Z(b,n,k) +=! X(b,n,m) * Y(b,k,m) }"
GCONV = """def gconv(float(N,G,C,H,W) I, float(G,F,C,KH,KW) W1) -> (O) {
    O(n,g,o,h,w) +=! I(n,g,c,h+kh,w+kw) * W1(g,o,c,kh,kw)
}"""
ADD = "def add(float(M,N) A, float(M,N) B) -> (C) { C(m,n) = A(m,n) + B(m,n) }"
ROWS = "def rows(float(M,N) A) -> (s) { s(m) +=! A(m,n) }"


def source(definition: str, *shapes: tuple[int, ...], options: tc.GpuOptions | None = None) -> str:
    return tc.define(definition).single().compile(*shapes, target="emulator", options=options).source


def launches(text: str) -> list[list[tuple[int, ...]]]:
    """Blocks of the grid and threads of a block, of every kernel."""
    found = re.findall(r"grid\[3\] = \{(.*?)\}, block\[3\] = \{(.*?)\}", text)
    return [[tuple(map(int, sizes.split(", "))) for sizes in pair] for pair in found]


@pytest.mark.parametrize(
    ("shapes", "grid", "block"),
    [
        (((128, 32), (256, 32)), (16, 8, 1), (16, 16, 1)),
        (((128, 1024), (1024, 1024)), (32, 4, 1), (32, 8, 1)),
        (((1024, 1024), (1024, 1024)), (8, 16, 1), (32, 8, 1)),
        (((128, 4096), (16384, 4096)), (128, 1, 1), (32, 8, 1)),
    ],
)
def test_products_have_the_largest_tiles_that_leave_enough_blocks(
    shapes: tuple[tuple[int, int], ...], grid: tuple[int, ...], block: tuple[int, ...]
) -> None:
    text = source(TMM, *shapes)
    assert launches(text) == [[grid, block]]
    assert re.findall(r"shared\d_([AB])", text)


def test_products_of_a_few_steps_have_a_thread_for_every_point() -> None:
    assert launches(source(TMM, (128, 7), (256, 7))) == [[(8, 16, 1), (32, 8, 1)]]


def test_tiles_are_no_larger_than_what_there_is() -> None:
    assert launches(source(TBMM, (500, 26, 72), (500, 26, 72))) == [[(1, 1, 500), (26, 9, 1)]]


def test_all_independent_loops_go_to_blocks() -> None:
    text = source(GCONV, (3, 5, 16, 14, 14), (5, 16, 16, 3, 3))
    assert launches(text) == [[(3 * 5 * 12, 1, 1), (12, 1, 16)]]
    assert "team->block[0] / 60" in text
    assert "team->block[0] / 12 % 5" in text


def test_a_grid_that_is_named_has_these_dimensions() -> None:
    text = source(GCONV, (3, 5, 16, 14, 14), (5, 16, 16, 3, 3), options=tc.GpuOptions(grid=(1, 4)))
    assert launches(text) == [[(4, 1, 1), (12, 1, 16)]]


def test_what_is_read_once_has_a_thread_for_every_point() -> None:
    text = source(ADD, (100, 70), (100, 70))
    headers = re.findall(r"for \(int32_t (\w+) = 0; \w+ < (\d+);", text)
    assert headers[-4:] == [("block_y", "13"), ("block_x", "3"), ("thread_y", "8"), ("thread_x", "32")]


def test_reductions_along_memory_are_split_but_products_are_not() -> None:
    assert "_parts" in source(ROWS, (33, 100))
    assert "_parts" not in source(TMM, (33, 100), (20, 100))
