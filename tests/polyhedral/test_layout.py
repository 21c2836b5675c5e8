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
@pytest.mark.parametrize("layout", [tc.TileLayout.POINTS, tc.TileLayout.VECTORS])
def test_values_are_those_of_the_definition(
    text: str, shapes: tuple[tuple[int, ...], ...], stages: int, layout: tc.TileLayout
) -> None:
    definition = tc.define(text).single()
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape, np.float32) for shape in shapes]
    own = options(layout, stages=stages)
    (found,) = run(definition, tuple(arrays), None, own, "emulator")
    (expected,) = definition.oracle(*arrays).values()
    assert compare(expected, np.asarray(found)).ok


def test_what_is_no_layout_is_refused() -> None:
    with pytest.raises(tc.OptionsError, match=r"^layout must be a tc\.TileLayout, got 'points'$"):
        tc.GpuOptions(layout="points")  # type: ignore[arg-type]


CONVOLUTION = """
def conv(float(N,G,C,H,W) I, float(G,F,C,KH,KW) W1) -> (O) { O(n,g,f,h,w) +=! I(n,g,c,h+kh,w+kw) * W1(g,f,c,kh,kw) }
"""


def accesses(size: int, channels: int = 8, side: int = 28) -> tuple[list[str], list[str]]:
    """The terms of where a convolution with default options reads its image and its filters, of so many rows."""
    conv = tc.define(CONVOLUTION).conv
    shapes = ((32, 32, channels, side, side), (32, channels, channels, size, size))
    source = translated(conv, *shapes, target="cuda:sm_90").source.text
    names = dict(re.findall(r"const int (offset\d+) = (.*);", source))
    found = re.search(r"\+= t_shared\d_I\[(.*?)\] \* t_shared\d_W1\[(.*?)\];", source)
    assert found is not None
    image, filters = (re.sub(r"offset\d+", lambda name: names[name[0]], own) for own in found.groups())
    return image.split(" + "), filters.split(" + ")


def test_filters_lie_side_by_side_where_their_rows_are_odd() -> None:
    """What moves to the next element is a filter of a thread, and else a column, as in the image."""
    for size, columns in ((3, False), (4, True)):
        image, filters = accesses(size)
        assert re.fullmatch(r"c\d", image[-1])
        assert re.fullmatch(r"c\d", filters[-1])
        assert (image[-1] == filters[-1]) == columns


def test_threads_have_rows_of_an_image_that_are_neighbours() -> None:
    """Their steps are those of the rows of a filter."""
    image, _ = accesses(3)
    steps = [term.split(" * ")[0] for term in image if re.search(r"\* c\d$", term)]
    assert steps.count("28") == 2
    assert "56 * thread_y" in image


def test_threads_have_whole_rows_of_small_images() -> None:
    """The columns and the taps of a row move by one element each, and no thread does."""
    image, filters = accesses(3, channels=32, side=7)
    assert sum(re.fullmatch(r"c\d", term) is not None for term in image) == 2
    assert not any(re.fullmatch(r"thread_\w+", term) for term in image)
    assert re.fullmatch(r"4 \* thread_\w+", filters[-2])
    assert re.fullmatch(r"c\d", filters[-1])


def test_rows_of_images_keep_their_length() -> None:
    """Where operands move along other loops, too, a tile has no points beyond the border."""
    conv = tc.define(CONVOLUTION).conv
    source = translated(conv, (32, 32, 4, 56, 56), (32, 4, 4, 3, 3), target="cuda:sm_90").source.text
    assert "__launch_bounds__(243" in source  # 27 by 9, for 54 columns


def test_values_of_convolutions_with_default_options_are_those_of_the_definition() -> None:
    conv = tc.define(CONVOLUTION).conv
    random = np.random.default_rng(0)
    for shapes in (
        ((5, 2, 3, 13, 17), (2, 7, 3, 3, 3)),
        ((9, 1, 4, 12, 9), (1, 8, 4, 5, 2)),
        ((33, 4, 6, 7, 6), (4, 32, 6, 3, 3)),
    ):
        arrays = [random.standard_normal(shape, np.float32) for shape in shapes]
        assert compare(conv.oracle(*arrays)["O"], np.asarray(conv(*arrays, target="emulator"))).ok
