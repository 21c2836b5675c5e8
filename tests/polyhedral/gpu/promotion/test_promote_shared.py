"""Which copies in shared memory there are, and around which loops."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tests.mutants.judge import Given, is_right
from tests.translated import translated
from tests.turns import every, one_in

# The weights have nothing to do with ``k``.
WEIGHTED = "def weighted(float(N,C,K) X, float(M,C) W) -> (O) { O(n,m) +=! W(m,c) * X(n,c,k) }"
OPTIONS = tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4, 4)), block=(4, 4))


def loops_around_copies(source: str) -> list[int]:
    """How many loops are around each copy, in the order of the text."""
    depths: list[int] = []
    around: list[bool] = []
    for line in source[source.index("__global__") :].splitlines():
        if "_pack" in line:
            depths.append(sum(around))
        around += [line.lstrip().startswith("for ")] * line.count("{")
        around = around[: len(around) - line.count("}")]
    return depths


@one_in(2)
@pytest.mark.parametrize("stages", every(2, [1, 2, 3, None]))
def test_what_all_tiles_have_alike_is_copied_once(stages: int | None) -> None:
    weighted = tc.define(WEIGHTED).single()
    options = tc.GpuOptions(OPTIONS.schedule, block=OPTIONS.block, stages=stages)
    source = translated(weighted, (40, 9, 33), (24, 9), target="cuda:sm_90", options=options).source.text
    names = re.findall(r"// (S0_pack\d+)\n", source)
    assert len(dict.fromkeys(names)) == 2
    weights, *data = loops_around_copies(source)
    assert weights < min(data)
    rng = np.random.default_rng(0)
    inputs = {"X": rng.standard_normal((11, 9, 33), np.float32), "W": rng.standard_normal((13, 9), np.float32)}
    kernel = weighted.compile(*inputs.values(), target="emulator", options=options)
    assert is_right(weighted, kernel, Given(inputs))


def test_a_loop_of_which_a_block_has_one_tile_is_not_copied_ahead_for() -> None:
    """A tile of ``m`` is a block's; that there are several of them was enough to ask for its slots."""
    concat = tc.define(
        "def concat(float(M,N) A, float(M,N) B) -> (O) { O(n,i,m) = i == 0 ? A(m,n) : B(m,n) where i in 0:2 }"
    )
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 2)), stages=3)
    source = translated(concat.single(), (7, 129), (7, 129), target="cuda:sm_90", options=options).source.text
    assert "_pack" in source
    assert set(loops_around_copies(source)) == {0}


@pytest.mark.parametrize(
    ("text", "shapes", "is_shared"),
    [
        ("def columns(float(M,N) X) -> (y) { y(n) +=! X(m,n) }", ((8192, 512),), False),
        (
            "def weighted_columns(float(M,N) X, float(M) w) -> (y) { y(n) +=! X(m,n) * w(m) }",
            ((999, 200), (999,)),
            False,
        ),
        ("def turned(float(M,N) X) -> (Y) { Y(n,m) = X(m,n) }", ((333, 200),), True),
    ],
)
def test_neighbours_are_threads_and_not_the_iterations_of_a_loop(
    text: str, shapes: tuple[tuple[int, ...], ...], is_shared: bool
) -> None:
    """Sums of columns were copied row by row, with a barrier each: neighbours read side by side in every iteration."""
    source = translated(tc.define(text).single(), *shapes, target="cuda:sm_90").source.text
    assert ("shared0_X" in source) == is_shared
