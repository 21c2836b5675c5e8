"""Nests that do not wait for each other, in one kernel."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import tc
from tc.polyhedral.generate.outermost_nests import OutermostNest
from tc.reference.compare import compare
from tc.targets.machine import GPUS
from tests.gpu_cases import fitting, run
from tests.opencl import require
from tests.turns import every, every_row, one_in

MINIMAL = tc.GpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL))
MAXIMAL = tc.GpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MAXIMAL))
APART = "def apart(float(N) x, float(M) y) -> (a, b) { a(i) = 2.0 * x(i)  b(j) = y(j) + 1.0 }"
# The last one waits for nothing but the first.
CHAIN = """
def chain(float(N) x, float(M) y) -> (a, b, c) {
  a(i) = 2.0 * x(i)
  b(i) = a(i) * a(0)
  c(j) = y(j) * a(0)
}
"""
PRODUCTS = """
def products(float(M,K) A, float(K,N) B, float(K,L) D) -> (C, E) {
  C(m,n) +=! A(m,k) * B(k,n)
  E(m,n) +=! A(m,k) * D(k,n)
}
"""
TURNED = """
def turned(float(M,N) X, float(K,L) Y) -> (T, U) {
  T(n,m) = X(m,n)
  U(l,k) = 2.0 * Y(k,l)
}
"""
ROWS = """
def rows(float(M,N) X, float(L) y) -> (s, O, z) {
  s(m) max=! X(m,n)
  O(m,n) = exp(X(m,n) - s(m))
  z(l) = y(l) * 3.0
}
"""


def kernel(text: str, *shapes: tuple[int, ...], options: tc.GpuOptions | None = None) -> tc.Kernel:
    return tc.define(text).single().compile(*shapes, target="cuda:sm_90", options=options)


def grids(text: str, *shapes: tuple[int, ...], options: tc.GpuOptions | None = None) -> list[tuple[int, ...]]:
    return [grid.grid for grid in kernel(text, *shapes, options=options).resources.grids]


def agrees(text: str, *shapes: tuple[int, ...], options: tc.GpuOptions | None = None) -> bool:
    definition = tc.define(text).single()
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape, np.float32) for shape in shapes]
    found = run(definition, tuple(arrays), None, options or tc.GpuOptions(), "emulator")
    expected = definition.oracle(*arrays).values()
    return all(compare(own, np.asarray(values)).ok for own, values in zip(expected, found, strict=True))


def test_blocks_of_one_nest_come_after_those_of_the_other() -> None:
    assert grids(APART, (100000,), (50000,)) == [(391 + 196, 1, 1)]
    assert grids(APART, (100000,), (50000,), options=MINIMAL) == [(391, 1, 1), (196, 1, 1)]


def test_what_waits_is_a_kernel_of_its_own_and_takes_others_with_it() -> None:
    assert grids(CHAIN, (100000,), (50000,)) == [(391, 1, 1), (391 + 196, 1, 1)]


def test_long_nests_are_joined_where_that_is_asked_for() -> None:
    assert len(grids(APART, (1 << 23,), (5000,))) == 2
    assert len(grids(APART, (1 << 23,), (5000,), options=MAXIMAL)) == 1


def test_a_grid_that_the_options_give_is_for_a_nest_of_its_own() -> None:
    assert grids(APART, (100000,), (50000,), options=tc.GpuOptions(grid=(7,))) == [(7, 1, 1), (7, 1, 1)]


def test_what_blocks_share_fits() -> None:
    shapes = ((70, 60), (60, 50), (60, 90))
    assert len(grids(PRODUCTS, *shapes)) == 1
    small = tc.GpuOptions(shared_memory=12 << 10)
    assert len(grids(PRODUCTS, *shapes, options=small)) == 2


def test_blocks_of_more_dimensions_are_numbered_along_x() -> None:
    assert grids(TURNED, (640, 600), (300, 500)) == [(20 * 19 + 10 * 16, 1, 1)]


@one_in(2)
@pytest.mark.parametrize("threads", [(32,), (16, 4), (64, 8), (4, 16, 16)])
def test_blocks_of_other_shapes_are_as_large_as_both_need(threads: tuple[int, ...]) -> None:
    flat = "def flat(float(L,M,N) X, float(K) y) -> (a, z) { a(l,m,n) = 2.0 * X(l,m,n)  z(k) = y(k) + 1.0 }"
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(16, 16, 64)), block=threads)
    shapes = ((32, 33, 65), (1000,))
    found = fitting(lambda chosen: grids(flat, *shapes, options=chosen), options)
    assert len(found) == 1
    assert agrees(flat, *shapes, options=options)


@one_in(2)
@pytest.mark.parametrize(
    "options", every(2, [None, MAXIMAL, tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8)), block=(4, 8))])
)
@pytest.mark.parametrize(
    ("text", "shapes"),
    every_row(
        2,
        [
            (APART, ((1000,), (517,))),
            (APART, ((3,), (2049,))),
            (CHAIN, ((700,), (1025,))),
            (PRODUCTS, ((70, 33), (33, 50), (33, 90))),
            (ROWS, ((37, 129), (1000,))),
            (TURNED, ((70, 75), (40, 33))),
        ],
    ),
)
def test_values_are_those_of_the_definition(
    text: str, shapes: tuple[tuple[int, ...], ...], options: tc.GpuOptions | None
) -> None:
    assert agrees(text, *shapes, options=options)


def test_the_proof_refuses_nests_in_one_kernel_that_wait_for_each_other() -> None:
    def none(_own: OutermostNest, _other: OutermostNest) -> tuple[str, ...]:
        return ()

    with (
        patch.object(OutermostNest, "conflicts", none),
        pytest.raises(tc.VerificationError, match="the generated code is not proven correct: "),
    ):
        kernel(CHAIN, (100000,), (50000,))


def test_explanations_say_what_the_kernels_are() -> None:
    chain, shapes = tc.define(CHAIN).chain, ((100000,), (50000,))

    def explained(options: tc.GpuOptions | None, *own: tuple[int, ...]) -> str:
        text = chain.explain(*(own or shapes), target="cuda:sm_90", options=options)
        return text.partition("== kernels ==\n")[2].partition("\n\n")[0]

    assert explained(None).splitlines() == [
        "kernel 0: S0",
        "  blocks 391, threads 256",
        "  read where they lie: x",
        "kernel 1: S1, S2",
        "  blocks 587, threads 256",
        "  read where they lie: a, y",
        "  waits for all blocks of kernel 0, for a",
    ]
    assert explained(MINIMAL).splitlines()[-1] == "  apart from kernel 1: fusion is minimal"
    given = tc.GpuOptions(grid=(2,))
    assert explained(given).splitlines()[-1] == "  apart from kernel 1: each has the grid that the options give"
    long = explained(None, (100000,), (1 << 23,))
    assert (
        long.splitlines()[-1]
        == f"  apart from kernel 1: one of them has more than {GPUS['sm_90'].short_nest} instances"
    )


def test_how_many_blocks_there_are_is_known_before() -> None:
    text = tc.define(APART).apart.explain((tc.dynamic(100000),), (50000,), target="cuda:sm_90")
    assert "  apart from kernel 0: how many blocks it has is open\n" in text


def test_opencl_has_no_barrier_in_a_branch() -> None:
    require("opencl")
    apart, products = (tc.define(text).single() for text in (APART, PRODUCTS))
    for definition, shapes, reason in (
        (apart, ((100000,), (50000,)), ""),
        (
            products,
            ((64, 64), (64, 64), (64, 64)),
            "threads of a block wait for each other, which the target gets wrong",
        ),
    ):
        text = definition.explain(*shapes, target="opencl").partition("== kernels ==\n")[2].partition("\n\n")[0]
        assert ("kernel 1: " in text) == bool(reason)
        assert reason in text


def test_explanations_say_what_is_in_which_memory() -> None:
    products = tc.define(PRODUCTS).products
    text = products.explain(
        (64, 64), (64, 64), (64, 64), target="cuda:sm_90", options=tc.GpuOptions(shared_memory=12 << 10)
    )
    for line in (
        r"  shared by its threads: shared2_A: float32[",
        r"  of each thread: private0_C: float32[",
        r"  apart from kernel 0: they would share more than 12288 bytes in a block",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("stages", "lines"),
    [
        # Without registers, the sums are float64 in memory.
        (
            2,
            (
                "shared by its threads: shared0_A: float32[2, 64, 16], shared1_B: float32[2, 16, 64]",
                "read where they lie: sum0",
            ),
        ),
        (3, ("shared by its threads: shared0_A: float32[3, 64, 16]", "read where they lie: B, sum0")),
    ],
)
def test_explanations_say_what_found_no_room(stages: int, lines: tuple[str, ...]) -> None:
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
    tiles = tc.ScheduleOptions(tile=(64, 64, 16))
    options = tc.GpuOptions(tiles, block=(16, 16), register_accumulators=0, shared_memory=20000, stages=stages)
    text = mm.explain((256, 256), (256, 256), target="cuda:sm_90", options=options)
    kernels = text.partition("== kernels ==\n")[2].partition("\n\n")[0].splitlines()
    assert kernels[2:] == [f"  {line}" for line in lines]
