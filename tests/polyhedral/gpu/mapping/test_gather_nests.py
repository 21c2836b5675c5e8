"""Small nests in one block."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.turns import one_in

# Each reads all that the one before it has written, so that a grid could only run them as kernels of their own.
CHAIN = """
def chain(float(N) x) -> (a, b, c) {
  a() +=! x(i)
  b(i) = x(i) - a()
  c() max=! b(i)
}
"""


def kernels(text: str, *shapes: tuple[int, ...], options: tc.GpuOptions | None = None) -> int:
    return tc.define(text).single().compile(*shapes, target="cuda:sm_90", options=options).source.count("__global__")


def test_a_block_runs_what_is_small_one_after_the_other() -> None:
    assert kernels(CHAIN, (50,)) == 1
    assert kernels(CHAIN, (50,), options=tc.GpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL))) > 2


def test_sizes_that_were_given_are_for_nests_of_their_own() -> None:
    for options in (
        tc.GpuOptions(tc.ScheduleOptions(tile=(16,))),
        tc.GpuOptions(grid=(4,)),
        tc.GpuOptions(block=(1,)),
    ):
        assert kernels(CHAIN, (50,), options=options) > 1


def test_what_is_large_has_a_grid_of_its_own() -> None:
    text = "def f(float(N) x) -> (a, b) { a(i) = x(i) + 1.0  b(i) = a(i) * a(0) }"
    assert kernels(text, (1000,)) == 1
    assert kernels(text, (100000,)) == 2


@one_in(2)
@pytest.mark.parametrize("size", [1, 2, 31, 50, 97, 300])
def test_values_are_those_of_the_definition(size: int) -> None:
    chain = tc.define(CHAIN).chain
    values = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    found = chain(values, target="emulator")
    assert isinstance(found, tuple)
    for (name, expected), result in zip(chain.oracle(values).items(), found, strict=True):
        assert compare(expected, np.asarray(result)).ok, name
