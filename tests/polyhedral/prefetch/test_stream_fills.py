"""Nests that do nothing but fill a large result with a number store past the caches."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.polyhedral.ir.loops import Instance, leaves
from tc.polyhedral.pipeline import map_program
from tc.targets.options import CpuOptions, Fusion, ScheduleOptions
from tests.polyhedral.support import MACHINE, specialized
from tests.turns import every

APART = ScheduleOptions(fusion=Fusion.MINIMAL)
ALL = CpuOptions(APART, nontemporal_stores=1)
SCATTER = "def f(float(B,D) v, int32(B) I) -> (y) { y(I(b),d) +=! v(b,d) where I(b) in 0:50 }"
LEAST = "def f(float(B,D) v, int32(B) I) -> (y) { y(I(b),d) min=! v(b,d) where I(b) in 0:50 }"
HALVES = "def f(half(B,D) v, int32(B) I) -> (y) { y(I(b),d) +=! v(b,d) where I(b) in 0:50 }"
SEVENS = "def f(float(N,M) x) -> (y) { y(n,m) = 7.0 where n in 0:N, m in 0:M\n y(n,m) += x(n,m) }"
NUMBERS = "def f(float(N,M) x) -> (y) { y(n,m) = float(m) where n in 0:N, m in 0:M\n y(n,m) += x(n,m) }"
BORDER = "def f(float(N,M) x) -> (y) { y(n,0) = 7.0 where n in 0:N\n y(n,m) = x(n,m) where m in 1:M }"
TURNED = "def f(float(N,M) x) -> (y) { y(n,M-1-m) = 7.0 where n in 0:N, m in 0:M\n y(n,m) += x(n,m) }"


def streamed(text: str, shapes: tuple[tuple[int, ...], ...], options: CpuOptions = ALL) -> set[str]:
    root = map_program(specialized(text, shapes), options, MACHINE).loops.root
    return {leaf.statement for leaf in leaves(root) if isinstance(leaf, Instance) and leaf.nontemporal}


@pytest.mark.parametrize("shape", [(9, 3000), (3000, 9), (1, 70000), (4099, 1)])
def test_fills_apart_are_streamed(shape: tuple[int, int]) -> None:
    assert streamed(SEVENS, (shape,)) == {"S0"}
    assert streamed(SEVENS, (shape,), CpuOptions(APART)) == set(), "it is small"
    assert streamed(SEVENS, (shape,), CpuOptions(APART, nontemporal_stores=0)) == set(), "none is to be"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NUMBERS, "values differ"),
        (BORDER, "elements do not lie side by side"),
        (TURNED, "the elements lie in the other order"),
    ],
)
def test_other_nests_are_not(text: str, why: str) -> None:
    assert "S0" not in streamed(text, ((40, 300),)), why


def test_what_is_filled_next_to_its_use_stays_in_the_caches() -> None:
    text = "def f(float(N,K) a, float(K,M) b) -> (y) { y(n,m) +=! a(n,k) * b(k,m) }"
    fused = CpuOptions(ScheduleOptions(fusion=Fusion.MAXIMAL), nontemporal_stores=1, register_accumulators=0)
    assert "S0_init" in streamed(text, ((90, 30), (30, 300)))
    assert "S0_init" not in streamed(text, ((90, 30), (30, 300)), fused)


@pytest.mark.parametrize("width", every(2, [1, 3, 16, 64, 77, 1000, 5001]))
@pytest.mark.parametrize("text", [SCATTER, LEAST, HALVES])
def test_results_are_those_of_the_oracle(text: str, width: int) -> None:
    generator = np.random.default_rng(width)
    f = tc.define(text).f
    v = generator.integers(-3, 4, (11, width)).astype(np.float16 if text == HALVES else np.float32)
    index = generator.integers(0, 50, 11).astype(np.int32)
    kernel = f.compile(v, index, options=ALL)
    assert ("tc_fill(&" in kernel.source) == (50 * width * 4 >= 1 << 12), "halves are summed in float32"
    np.testing.assert_array_equal(kernel(v, index), f.reference(v, index))


def test_pieces_of_tensors_are_filled_and_nothing_beside_them() -> None:
    f = tc.define(SCATTER).f
    whole = np.full((52, 6000), 3.0, np.float32)
    part, v = whole[1:51, 5:5900], np.zeros((1, 5895), np.float32)
    f(v, np.zeros(1, np.int32), out=part, options=ALL)
    expected = np.full((52, 6000), 3.0, np.float32)
    expected[1:51, 5:5900] = 0.0
    np.testing.assert_array_equal(whole, expected)
