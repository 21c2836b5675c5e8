"""What blocks and threads share: tiles and their points, or rows and their columns."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.translated import translated
from tests.turns import every, every_row

MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
NORMALIZE = """
def normalize(float(M,N) X) -> (O) {
  total(m) +=! X(m,n)
  O(m,n) = X(m,n) / total(m)
}
"""
CHAIN = """
def chain(float(M,K) A, float(K,N) B, float(N,P) D) -> (E) {
  C(m,n) +=! A(m,k) * B(k,n)
  E(m,p) +=! C(m,n) * D(n,p)
}
"""


def sizes(text: str, shapes: tuple[tuple[int, ...], ...], options: tc.GpuOptions) -> list[tuple[tuple[int, ...], ...]]:
    """Grid and block of every kernel, x first."""
    kernel = translated(tc.define(text).single(), *shapes, target="cuda:sm_90", options=options)
    return [(grid.grid, grid.block) for grid in kernel.source.grids]


def test_the_threads_of_a_block_are_no_more_than_256_by_default() -> None:
    for tile in ((64, 64), (8, 256), (1024, 4)):
        ((_, block),) = sizes(MM, ((1024, 64), (64, 1024)), tc.GpuOptions(tc.ScheduleOptions(tile=tile)))
        assert np.prod(block) <= 256


@pytest.mark.parametrize("room", every(4, [5000, 0, 1000, 48 << 10]))
def test_shared_memory_is_no_more_than_the_options_say(room: int) -> None:
    for tile in ((64, 64, 16), (1024, 4), (8, 256, 8)):
        options = tc.GpuOptions(tc.ScheduleOptions(tile=tile), shared_memory=room)
        kernel = tc.define(MM).single().compile((1024, 64), (64, 1024), target="cuda:sm_90", options=options)
        assert all(grid.shared <= room for grid in kernel.resources.grids)


def test_rows_of_an_operand_are_padded() -> None:
    for padding in (0, 1, 4):
        options = tc.GpuOptions(tc.ScheduleOptions(tile=(64, 64, 16)), padding=padding, stages=1)
        kernel = translated(tc.define(MM).single(), (64, 64), (64, 64), target="cuda:sm_90", options=options)
        assert re.search(rf"t_shared\d_B\[{64 + padding} \* ", kernel.source.text)


def test_rows_go_to_blocks_and_columns_to_threads() -> None:
    options = tc.GpuOptions(split_k_threads=())
    ((grid, block),) = sizes(NORMALIZE, ((37, 100),), options)
    assert (grid, block) == ((37, 1, 1), (100, 1, 1))
    ((grid, block),) = sizes(NORMALIZE, ((37, 1000),), options)
    assert (grid, block) == ((37, 1, 1), (256, 1, 1))


def test_blocks_may_have_several_rows() -> None:
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(4,)), block=(32, 4), split_k_threads=())
    ((grid, block),) = sizes(NORMALIZE, ((37, 100),), options)
    assert (grid, block) == ((10, 1, 1), (32, 4, 1))


def test_partial_results_are_what_threads_share_of_a_sum() -> None:
    options = tc.GpuOptions(split_k_threads=(64,))
    ((grid, block),) = sizes("def f(float(M,N) X) -> (O) { O(m) +=! X(m,n) }", ((37, 1000),), options)
    assert (grid, block) == ((37, 1, 1), (64, 1, 1))


def test_statements_without_such_a_loop_run_on_the_first_thread() -> None:
    options = tc.GpuOptions(split_k_threads=())
    source = translated(tc.define(NORMALIZE).single(), (37, 100), target="cuda:sm_90", options=options).source.text
    assert re.search(r"if \(thread_x == 0\) \{\s*\{?\s*// S0_init|thread_x == 0", source)


def test_layers_of_one_block_hand_on_through_shared_memory() -> None:
    options = tc.GpuOptions(tc.ScheduleOptions(tc.Fusion.MAXIMAL), block=(16,), split_k_threads=())
    kernel = tc.define(CHAIN).single().compile((17, 9), (9, 16), (16, 11), target="emulator", options=options)
    assert re.search(r"shared\d_C", kernel.source)
    assert kernel.compilation is not None
    assert kernel.compilation.barriers


@pytest.mark.parametrize("distribution", list(tc.Distribution))
def test_both_distributions_of_rows_agree(distribution: tc.Distribution) -> None:
    x = np.random.default_rng(0).integers(1, 9, (5, 103)).astype(np.float32)
    normalize = tc.define(NORMALIZE).single()
    options = tc.GpuOptions(block=(32,), distribution=distribution, split_k_threads=(32,))
    found = np.asarray(normalize(x, target="emulator", options=options))
    np.testing.assert_allclose(found, x / x.sum(1, keepdims=True), rtol=1e-6)


def agrees(comprehension: tc.Comprehension, options: tc.GpuOptions, *arrays: np.ndarray) -> bool:
    """Whether all results on the emulator are those of the oracle."""
    found = comprehension(*arrays, target="emulator", options=options)
    expected = comprehension.oracle(*arrays)
    results = found if isinstance(found, tuple) else (found,)
    named = zip(comprehension.program.results, results, strict=True)
    return all(compare(expected[name], np.asarray(values)).ok for name, values in named)


# The options of the paper's appendix A.4 for these kernels: tiles of single points, whose blocks have more threads than
# some of the loops that are left to them have iterations.
BATCHED = "def tbmm(float(B,N,M) X, float(B,K,M) Y) -> (Z) { Z(b,n,k) +=! X(b,n,m) * Y(b,k,m) }"
GROUPED = """
def gconv(float(N,G,C,H,W) I, float(G,F,C,KH,KW) W1, float(G,F) B) -> (O) {
  O(n,g,f,h,w) +=! I(n,g,c,h+kh,w+kw) * W1(g,f,c,kh,kw)
  O(n,g,f,h,w) = O(n,g,f,h,w) + B(g,f)
}
"""
LAYERS = """
def mlp3(float(B,N) I, float(O,N) W2, float(O) B2, float(P,O) W3, float(P) B3, float(Q,P) W4, float(Q) B4)
    -> (O2, O3, O4) {
  O2(b,o) = B2(o)
  O2(b,o) += I(b,n) * W2(o,n)
  O2(b,o) = fmax(O2(b,o), 0)
  O3(b,p) = B3(p)
  O3(b,p) += O2(b,o) * W3(p,o)
  O3(b,p) = fmax(O3(b,p), 0)
  O4(b,q) = B4(q)
  O4(b,q) += O3(b,p) * W4(q,p)
  O4(b,q) = fmax(O4(b,q), 0)
}
"""
LAYER_SHAPES = ((3, 17), (64, 17), (64,), (32, 64), (32,), (2, 32), (2,))


@pytest.mark.parametrize("fusion", every(3, [tc.Fusion.MAXIMAL, tc.Fusion.PRESERVE_PARALLEL, tc.Fusion.MINIMAL]))
@pytest.mark.parametrize(
    ("text", "shapes", "tile", "block"),
    every_row(
        2,
        [
            (BATCHED, ((3, 26, 9), (3, 7, 9)), (1,), (7, 26)),
            (BATCHED, ((5, 9, 11), (5, 13, 11)), (), (4, 3, 2)),
            (GROUPED, ((2, 3, 2, 7, 7), (3, 4, 2, 3, 3), (3, 4)), (1, 1, 1), (4, 8, 4)),
            (GROUPED, ((2, 3, 2, 7, 7), (3, 4, 2, 3, 3), (3, 4)), (1, 1), (8, 7, 7)),
            (LAYERS, LAYER_SHAPES, (1,), (128,)),
        ],
    ),
)
def test_threads_share_the_innermost_loops_that_tiles_leave_whole(
    text: str, shapes: tuple[tuple[int, ...], ...], tile: tuple[int, ...], block: tuple[int, ...], fusion: tc.Fusion
) -> None:
    kernel = tc.define(text).single()
    options = tc.GpuOptions(tc.ScheduleOptions(fusion, tile), block=block)
    rng = np.random.default_rng(0)
    assert agrees(kernel, options, *(rng.random(shape, np.float32) for shape in shapes))
    # Exactly the threads that are asked for, for whom NVRTC finds nothing to complain about.
    padded = (*block, 1, 1)[:3]
    compiled = kernel.compile(*shapes, target="cuda:sm_80", options=options)
    assert {grid.block for grid in compiled.resources.grids} == {padded}


def test_loops_that_are_left_whole_have_no_dimension_of_the_grid() -> None:
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(1,)), block=(26, 7))
    ((grid, block),) = sizes(BATCHED, ((500, 26, 72), (500, 26, 72)), options)
    assert (grid, block) == ((500, 1, 1), (26, 7, 1))
    ((grid, block),) = sizes(BATCHED, ((500, 26, 72), (500, 26, 72)), tc.GpuOptions(tc.ScheduleOptions(tile=(1,))))
    assert (grid[0], int(np.prod(block)) > 100) == (500, True)
    fewer = tc.GpuOptions(tc.ScheduleOptions(tile=(1,)), block=(26, 7), grid=(72,))
    assert sizes(BATCHED, ((500, 26, 72), (500, 26, 72)), fewer) == [((72, 1, 1), (26, 7, 1))]


def test_threads_without_iterations_copy_what_all_share() -> None:
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(1, 4, 4, 8)), block=(4, 4, 4), stages=1)
    kernel = tc.define(BATCHED).single().compile((3, 9, 17), (3, 10, 17), target="cuda:sm_80", options=options)
    assert [grid.block for grid in kernel.resources.grids] == [(4, 4, 4)]
    (copies,) = re.findall(r"// S0_pack1\s+.*", kernel.source)
    assert "thread_z" in copies


@pytest.mark.parametrize("size", [2, 33])
def test_statements_in_one_loop_share_the_same_one(size: int) -> None:
    """The totals of all lanes, which have no loop over lanes, went to threads along ``i``: no warp was whole."""
    text = "def f(float(N,K) A, float(N) X) -> (B, D) { B(i) +=! A(i,l)  D(i) = X(i) }"
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal((size, 64), np.float32), rng.standard_normal(size, np.float32)
    f = tc.define(text).single()
    assert agrees(f, tc.GpuOptions(), a, x)
    source = f.compile(a, x, target="cuda:sm_90").source
    assert "shfl" in source
    # None of the loops around an exchange or a barrier asks which thread it is for.
    assert not re.search(r"c\d+ == c\d+", source)


@pytest.mark.parametrize("distribution", every(2, tc.Distribution))
def test_sizes_of_tiles_are_those_of_the_loops_of_the_program(distribution: tc.Distribution) -> None:
    """A loop that threads share is two, of which one counts; and a tile of it has a point for each of them."""
    text = """
    def f(float(C,H) I) -> (O) {
      T(c,h) = I(c,h) * 2
      O(c,h) +=! T(c,2*h+3*kh) where h in 0:12, kh in 0:4
    }
    """
    f = tc.define(text).single()
    x = np.random.default_rng(0).standard_normal((9, 40), np.float32)
    for tile in ((4, 4, 2), (4, 64, 3), (2, 0, 3)):
        options = tc.GpuOptions(tc.ScheduleOptions(tc.Fusion.MAXIMAL, tile), distribution=distribution)
        assert agrees(f, options, x)
        kernel = f.compile((9, 40), target="emulator", options=options)
        assert kernel.compilation is not None
        tiled = next(stage.text for stage in kernel.compilation.stages if stage.name == "tile")
        assert f"floor((kh)/{tile[2]})" in tiled


@pytest.mark.parametrize("threads", every(2, [6, 20, 13, 32]))
@pytest.mark.parametrize("distribution", list(tc.Distribution))
def test_rows_have_as_many_threads_as_are_asked_for(threads: int, distribution: tc.Distribution) -> None:
    text = "def f(float(M,N) X) -> (s, O) { s(m) max=! X(m,n)  O(m,n) = X(m,n) - s(m) }"
    options = tc.GpuOptions(block=(threads,), distribution=distribution, split_k_threads=())
    x = np.random.default_rng(0).standard_normal((7, 40), np.float32)
    assert agrees(tc.define(text).single(), options, x)
    assert sizes(text, ((7, 40),), options) == [((7, 1, 1), (threads, 1, 1))]


def test_loops_over_blocks_and_threads_are_not_unrolled() -> None:
    """However few iterations there are: one thread would have those of all, in an order of its own."""
    text = "def f(float(N) X) -> (B) { A(m) = X(m)  B() +=! A(i) * A(i) where i in 1:A.0 }"
    options = tc.GpuOptions(tc.ScheduleOptions(unroll=16), shared_memory=0)
    assert agrees(tc.define(text).single(), options, np.array([2, 3], np.float32))
    assert sizes(text, ((2,),), options) == [((1, 1, 1), (2, 1, 1))]
    copy = "def copy(float(N) X) -> (A) { A(m) = X(m) }"
    assert sizes(copy, ((4,),), tc.GpuOptions(tc.ScheduleOptions(unroll=16))) == sizes(copy, ((4,),), tc.GpuOptions())
