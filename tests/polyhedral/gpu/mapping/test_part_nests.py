"""Nests that share too few loops are several, or launched step by step, and compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from benchmarks.problems.recurrent import LSTM
from tc.dispatch.kernel import Kernel
from tc.language.isl.session import MAX_OPERATIONS
from tc.polyhedral.pipeline import map_program
from tc.reference.compare import compare
from tc.targets.machine import GENERIC_GPU
from tests.turns import one_in

CUMULATIVE = "def f(float(M,N) x) -> (y) { y(m,i) +=! x(m,j) where j in 0:i+1, i in 0:N }"
# What follows each other is a product and its rows, which fit one block.
PRODUCTS = """
def f(float(M,K) A, float(K,N) B, float(N,K) C) -> (y) {
    t(m,n) +=! A(m,k) * B(k,n)
    s(m) max=! t(m,n)
    e(m,n) = exp(t(m,n) - s(m))
    y(m,k) +=! e(m,n) * C(n,k)
}"""


def lstm(steps: int, batch: int, size: int) -> tuple[tuple[int, ...], ...]:
    return ((steps, batch, size), (4, size, size), (4, size, size), (4, size), (batch, size), (batch, size))


def compiled(text: str, shapes: tuple[tuple[int, ...], ...], options: tc.GpuOptions | None = None) -> Kernel:
    return tc.define(text).single().compile(*shapes, target="cuda:sm_90", options=options)


CASES = {
    "few rows of a scan": (CUMULATIVE, ((3, 40_001),)),
    "steps of a batch": (LSTM, lstm(2, 3, 259)),
    "a product between others": (PRODUCTS, ((77, 300), (300, 310), (310, 300))),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_agree_with_the_oracle(name: str) -> None:
    text, shapes = CASES[name]
    f, random = tc.define(text).single(), np.random.default_rng(1)
    arrays = [random.standard_normal(shape).astype(np.float32) * np.float32(0.1) for shape in shapes]
    found = f(*arrays, target="emulator")
    expected = f.oracle(*arrays)
    results = found if isinstance(found, tuple) else (found,)
    for name, result in zip(expected, results, strict=True):
        comparison = compare(expected[name], np.asarray(result))
        assert comparison.ok, f"{name}: {comparison}"


def blocks(kernel: Kernel) -> list[int]:
    return [int(np.prod(grid.grid)) for grid in kernel.resources.grids]


def test_few_rows_are_shared_by_all_blocks() -> None:
    kernel = compiled(CUMULATIVE, ((16, 1 << 20),))
    assert [n > 1000 for n in blocks(kernel)] == [True, False, True]
    # Rows that are enough for all blocks stay together.
    assert len(blocks(compiled(CUMULATIVE, ((1024, 1024),)))) == 1


def test_steps_of_a_batch_are_launched_where_they_are_long() -> None:
    kernel = compiled(LSTM, lstm(100, 32, 256))
    (steps,) = kernel.executable.convention.steps
    assert (steps.first, steps.last, len(steps.values)) == (2, 3, 100)
    *_, product, rest = kernel.resources.grids
    assert np.prod(product.grid) == 128
    assert product.shared > 0
    assert np.prod(rest.block) == 64
    assert not compiled(LSTM, lstm(100, 32, 16)).executable.convention.steps


@pytest.mark.parametrize(
    "options",
    [
        tc.GpuOptions(tc.ScheduleOptions(tile=(1,))),
        tc.GpuOptions(block=(64,)),
        tc.GpuOptions(grid=(8,)),
        tc.GpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MAXIMAL)),
    ],
    ids=["tile", "block", "grid", "fusion"],
)
def test_what_was_asked_for_is_not_parted(options: tc.GpuOptions) -> None:
    kernel = compiled(LSTM, lstm(100, 32, 256), options)
    assert not kernel.executable.convention.steps


@one_in(2)
@pytest.mark.parametrize("name", CASES)
def test_every_pass_is_proven(name: str) -> None:
    text, shapes = CASES[name]
    program = tc.define(text).single().specialize(*shapes)
    assert map_program(
        program, tc.GpuOptions(), GENERIC_GPU, verify_every_pass=True, max_operations=MAX_OPERATIONS
    ).proof.leaves
