"""What a thread keeps of a result while it reduces into it lies in registers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tests.comprehensions.corpus import CASES
from tests.gpu_cases import OPTIONS, fitting
from tests.mutants.judge import Given, is_right
from tests.turns import every_row, one_in

CONVOLUTION = """
def convolution(float(N,C,H,W) I, float(M,C,KH,KW) K) -> (O) {
  O(n,m,h,w) +=! I(n,c,h + kh,w + kw) * K(m,c,kh,kw)
}
"""
SHAPES = {"I": (2, 3, 9, 11), "K": (5, 3, 3, 3)}
# No tile has part of a row, so that the loop along rows stands around those of the sum.
TILES = tc.GpuOptions(tc.ScheduleOptions(tile=(4, 4, 4)), block=(2, 4, 1), stages=1)


def test_of_loops_over_results_around_a_sum_only_the_results_of_one_iteration_are_kept() -> None:
    convolution = tc.define(CONVOLUTION).convolution
    kernel = convolution.compile(*SHAPES.values(), target="cuda:sm_90", options=TILES)
    begin, array, sum = (kernel.source.index(text) for text in ("c0 < 9", "float t_private0_O[", "c1 < 3"))
    assert begin < array < sum
    # Of 2 images and 2 rows.
    assert set(re.findall(r"t_private0_O\[([^]]*)\]", kernel.source)) == {"4", "2 * c1 + c2", "2 * c4 + c5"}
    assert all(grid.stack == 0 for grid in kernel.resources.grids)
    random = np.random.default_rng(0)
    inputs = {name: random.standard_normal(shape, np.float32) for name, shape in SHAPES.items()}
    assert is_right(convolution, convolution.compile(*inputs.values(), target="emulator", options=TILES), Given(inputs))


@one_in(2)
@pytest.mark.parametrize(
    ("name", "options"),
    every_row(
        2,
        [
            ("block_diagonal_permuted", "runs of points, few blocks"),
            ("conv2d_accumulate", "several points"),  # the sum's loops are of one band with one over results
            ("convolution_gradients", "copied ahead"),
            ("kronecker_full", "runs of points, few blocks"),  # results of one sum are operands of the next
            ("mv_accumulate", "runs of points, few blocks"),
        ],
    ),
)
def test_no_array_is_in_memory_where_threads_wait_between_its_elements(name: str, options: str) -> None:
    (case,) = (case for case in CASES if case.name == name)
    definitions = tc.define(case.text)
    comprehension = definitions[case.definition] if case.definition else definitions.single()
    inputs = case.make_inputs(np.random.default_rng(0), case.large_ragged_sizes)
    kernel = fitting(
        lambda chosen: comprehension.compile(*inputs.values(), target="cuda:sm_90", options=chosen), OPTIONS[options]
    )
    assert "t_private" in kernel.source
    assert all(grid.stack == 0 for grid in kernel.resources.grids)


@pytest.mark.parametrize("size", [7, tc.dynamic(7)])
def test_a_value_without_dimensions_may_be_read_in_several_places(size: int) -> None:
    """All of them are called the same in a buffer, and each is read on a condition of its own."""
    f = tc.define("def f(int32(N) X) -> (A) { B(k) = (k > 2 ? A() : -A) * X(k)  A = A + B(0) }").f
    kernel = f.compile((size,), target="emulator")
    x, a = np.arange(1, 8, dtype=np.int32), np.full((), 3, np.int32)
    kernel(x, out=a)
    assert a == 3 - 3
