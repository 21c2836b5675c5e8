"""How blocks and threads share kernels by default."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.polyhedral.transform.share_loops import even_threads
from tc.reference.compare import compare
from tests.translated import translated

MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
TURN = "def turn(float(M,N) A) -> (C) { C(m,n) = A(n,m) }"
TMM = "def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }"
TBMM = "def tbmm(float(B,N,M) X, float(B,K,M) Y) -> (Z) { Z(b,n,k) +=! X(b,n,m) * Y(b,k,m) }"
GCONV = """def gconv(float(N,G,C,H,W) I, float(G,F,C,KH,KW) W1) -> (O) {
    O(n,g,o,h,w) +=! I(n,g,c,h+kh,w+kw) * W1(g,o,c,kh,kw)
}"""
ADD = "def add(float(M,N) A, float(M,N) B) -> (C) { C(m,n) = A(m,n) + B(m,n) }"
SCALE = "def scale(float(M,N) A, float(N) v) -> (C) { C(m,n) = A(m,n) * v(n) }"
NORM = """def norm(float(N,C,H,W) I) -> (s, q, O) {
    s(n) +=! I(n,c,h,w)
    q(n) +=! I(n,c,h,w) * I(n,c,h,w)
    O(n,c,h,w) = (I(n,c,h,w) - s(n)) * q(n)
}"""
ROWS = "def rows(float(M,N) A) -> (s) { s(m) +=! A(m,n) }"


def source(definition: str, *shapes: tuple[int, ...], options: tc.GpuOptions | None = None) -> str:
    return translated(tc.define(definition).single(), *shapes, target="emulator", options=options).source.text


def launches(text: str) -> list[list[tuple[int, ...]]]:
    """Blocks of the grid and threads of a block, of every kernel."""
    found = re.findall(r"grid\[3\] = \{(.*?)\}, block\[3\] = \{(.*?)\}", text)
    return [[tuple(map(int, sizes.split(", "))) for sizes in pair] for pair in found]


def shared_loops(text: str) -> list[tuple[str, str]]:
    """The loops over blocks and threads of a kernel without barriers, and how often each runs."""
    return re.findall(r"for \(int64_t ((?:block|thread)_\w)_turn = 0; \w+ < (\d+);", text)


@pytest.mark.parametrize(
    ("shapes", "grid", "block"),
    [
        (((128, 32), (256, 32)), (16, 8, 1), (16, 16, 1)),
        (((128, 1024), (1024, 1024)), (8, 1, 16), (16, 16, 1)),
        (((1024, 1024), (1024, 1024)), (8, 8, 2), (16, 16, 1)),
        (((1024, 256), (1024, 256)), (8, 16, 1), (16, 16, 1)),
        (((128, 4096), (16384, 4096)), (128, 1, 1), (16, 16, 1)),
    ],
)
def test_products_have_the_largest_tiles_that_leave_enough_blocks(
    shapes: tuple[tuple[int, int], ...], grid: tuple[int, ...], block: tuple[int, ...]
) -> None:
    text = source(TMM, *shapes)
    first, *_ = launches(text)  # another kernel adds up what several blocks have of a tile
    assert first == [grid, block]
    assert re.findall(r"shared\d_([AB])", text)


def test_products_of_a_few_steps_have_the_tiles_of_anything_else() -> None:
    assert launches(source(MM, (128, 7), (7, 256))) == [[(8, 16, 1), (32, 8, 1)]]


def test_what_is_turned_has_square_tiles() -> None:
    assert launches(source(TURN, (300, 500))) == [[(10, 16, 1), (32, 8, 1)]]
    assert launches(source(TMM, (128, 7), (256, 7))) == [[(8, 4, 1), (32, 8, 1)]]


def test_short_loops_of_a_product_share_a_tile_with_others_along_the_same_operand() -> None:
    text = source(GCONV, (32, 32, 8, 28, 28), (32, 8, 8, 3, 3))
    assert launches(text) == [[(512, 1, 1), (13, 13, 1)]]
    assert "_O[64]" in text


@pytest.mark.parametrize(
    ("shapes", "block", "along"),
    [
        (((32, 32, 8, 28, 28), (32, 8, 8, 3, 3)), (13, 13, 1), "56 * thread_y + 2 * thread_x"),
        (((32, 32, 4, 56, 56), (32, 4, 4, 3, 3)), (27, 9, 1), "180 * thread_y + 2 * thread_x"),
        # Too few threads would be left.
        (((32, 32, 16, 14, 14), (32, 16, 16, 3, 3)), (12, 12, 1), "14 * thread_y + thread_x"),
    ],
)
def test_threads_have_pairs_of_points_of_an_image(
    shapes: tuple[tuple[int, ...], ...], block: tuple[int, int, int], along: str
) -> None:
    """Neighbours along both sides, of which taps read some elements again, where that leaves four warps."""
    text = source(GCONV, *shapes)
    assert [own for kernel in launches(text) for own in kernel[1:]] == [block]
    assert f" = {along};" in text


def test_pairs_of_points_are_what_is_defined() -> None:
    arrays = [np.random.default_rng(0).random(shape, np.float32) for shape in ((320, 1, 2, 28, 28), (1, 2, 2, 3, 3))]
    gconv = tc.define(GCONV).single()
    kernel = gconv.compile(*arrays, target="emulator")
    assert isinstance(kernel.options, tc.GpuOptions)
    assert kernel.options.block == (13, 13)
    assert compare(gconv.oracle(*arrays)["O"], np.asarray(kernel(*arrays))).ok


def test_all_threads_have_as_many_points_if_that_can_be() -> None:
    assert [even_threads(points, 9, 13) for points in (8, 9, 26, 27, 50)] == [8, 9, 13, 9, 10]
    assert [even_threads(points, 32, 32) for points in (5, 54, 64, 100)] == [5, 27, 32, 25]


def test_tiles_are_no_larger_than_what_there_is() -> None:
    assert launches(source(TBMM, (500, 26, 72), (500, 26, 72))) == [[(1, 1, 500), (13, 13, 1)]]


def test_no_dimension_of_a_block_has_more_threads_than_gpus_have() -> None:
    text = "def f(float(M,K,B,C) X, float(N,K,B,C) Y) -> (Z) { Z(m,n,b,c) +=! X(m,k,b,c) * Y(n,k,b,c) }"
    ((_, (_, _, z)),) = launches(source(text, (128, 32, 12, 12), (81, 32, 12, 12)))
    assert z <= 64


def test_every_kernel_has_room_of_its_own() -> None:
    definition = """def chain(float(M,K) A, float(K,N) B, float(N,P) D) -> (C, E) {
        C(m,n) +=! A(m,k) * B(k,n)
        E(m,p) +=! C(m,n) * D(n,p)
    }"""
    text = source(definition, (256, 256), (256, 256), (256, 256))
    assert len(launches(text)) == 2
    assert re.findall(r"\*t_shared\d+_(\w+) =", text) == ["A", "B", "C", "D"]


def test_all_independent_loops_go_to_blocks() -> None:
    text = source(GCONV, (3, 5, 16, 14, 14), (5, 16, 16, 3, 3))
    assert launches(text) == [[(3 * 5 * 12, 1, 1), (12, 1, 16)]]
    assert "team->block[0] / 60" in text
    assert "team->block[0] / 12 % 5" in text


def test_a_grid_that_is_named_has_these_dimensions() -> None:
    text = source(GCONV, (3, 5, 16, 14, 14), (5, 16, 16, 3, 3), options=tc.GpuOptions(grid=(1, 4)))
    assert launches(text) == [[(4, 1, 1), (12, 1, 16)]]


def test_what_is_read_once_has_a_thread_for_every_point() -> None:
    shared = [("block_y", "125"), ("block_x", "3"), ("thread_y", "8"), ("thread_x", "32")]
    assert shared_loops(source(SCALE, (1000, 70), (70,))) == shared


def test_small_blocks_keep_many_multiprocessors_busy() -> None:
    shared = [("block_y", "50"), ("block_x", "3"), ("thread_y", "2"), ("thread_x", "32")]
    assert shared_loops(source(SCALE, (100, 70), (70,))) == shared
    assert shared_loops(source(ADD, (100, 70), (100, 70))) == [("block_x", "110"), ("thread_x", "64")]


def test_there_are_points_for_all_threads_that_are_asked_for() -> None:
    block = tc.GpuOptions(block=(64, 16))
    asked = [("block_y", "7"), ("block_x", "2"), ("thread_y", "16"), ("thread_x", "64")]
    assert shared_loops(source(SCALE, (100, 70), (70,), options=block)) == asked
    assert launches(source(TMM, (128, 32), (256, 32), options=block)) == [[(4, 8, 1), (64, 16, 1)]]


def test_rows_that_lie_end_to_end_are_shared_as_one() -> None:
    assert shared_loops(source(ADD, (1000, 70), (1000, 70))) == [("block_x", "274"), ("thread_x", "256")]
    two = [("block_y", "13"), ("block_x", "3"), ("thread_y", "8"), ("thread_x", "32")]
    assert shared_loops(source(ADD, (100, 70), (100, 70), options=tc.GpuOptions(block=(32, 8)))) == two
    assert launches(source(NORM, (5, 3, 20, 16))) == [[(5, 1, 1), (256, 1, 1)]]


def test_what_several_reductions_read_is_read_once() -> None:
    text = source(NORM, (5, 3, 20, 16))
    (loop,) = (part for part in text.split("for (") if "// S0\n" in part)
    assert "// S1\n" in loop
    assert "accumulator_0 +=" in loop
    assert "accumulator_1 +=" in loop


def test_reductions_along_memory_are_split_but_products_are_not() -> None:
    assert "_parts" in source(ROWS, (33, 100))
    assert "_parts" not in source(TMM, (33, 100), (20, 100))
