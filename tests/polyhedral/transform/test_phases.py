"""Loops in phases: lanes lie along ``w`` where statements walk ``2*w + j``."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.translated import translated


def upsampled(step: int, reach: int) -> str:
    return (
        f"def f(float(N,W) g) -> (y) {{ y(n,i) = 0.5 where n in 0:N, i in 0:{step}*W+3 "
        f"y(n,{step}*w+j) += g(n,w) * g(n,w) where j in 0:{reach} }}"
    )


POOL = """
def pool(float(N,C,H,W) I) -> (O) { O(n,c,h,w) max=! I(n,c,2*h+i,2*w+j) where i in 0:2, j in 0:2 }"""


@pytest.mark.parametrize(
    ("step", "reach", "phases"), [(2, 2, True), (3, 3, True), (4, 4, True), (5, 5, False), (3, 2, False)]
)
def test_lanes_lie_along_what_all_phases_share(step: int, reach: int, phases: bool) -> None:
    f = tc.define(upsampled(step, reach)).single()
    text = translated(f, (40, 50), target="cpu").source.text
    stores = set(re.findall(rf"t_y\[\d+ \* c\d \+ {step} \* c\d( \+ \d)?\]", text))
    assert (stores >= {""} | {f" + {n}" for n in range(1, step)}) == phases


@pytest.mark.parametrize("sizes", [(3, 5), (2, 1), (7, 33), (40, 16)])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_values_are_those_of_the_definition(step: int, sizes: tuple[int, int]) -> None:
    f = tc.define(upsampled(step, step)).single()
    g = np.random.default_rng(step).standard_normal(sizes).astype(np.float32)
    assert compare(f.oracle(g)["y"], np.asarray(f(g))).ok


@pytest.mark.parametrize("sizes", [(2, 3, 8, 8), (2, 3, 9, 7), (1, 17, 5, 40)])
@pytest.mark.parametrize("ties", ["split", "first"])
def test_gradients_of_pools(sizes: tuple[int, ...], ties: Literal["split", "first"]) -> None:
    gradient = tc.define(POOL).single().gradient("I", ties=ties)
    random = np.random.default_rng(0)
    image = random.integers(0, 3, sizes).astype(np.float32)
    weights = random.standard_normal((*sizes[:2], sizes[2] // 2, sizes[3] // 2)).astype(np.float32)
    found = np.asarray(gradient(image, weights))
    assert compare(gradient.oracle(image, weights)["d_I"], found).ok


def test_they_are_as_many_whatever_is_unrolled() -> None:
    f = tc.define(upsampled(2, 2)).single()
    g = np.random.default_rng(1).standard_normal((9, 21)).astype(np.float32)
    for unroll in (1, 2, 8):
        options = tc.CpuOptions(tc.ScheduleOptions(unroll=unroll))
        assert compare(f.oracle(g)["y"], np.asarray(f(g, options=options))).ok
    text = translated(f, (9, 21), target="cpu", options=tc.CpuOptions(vectorize=False)).source.text
    assert "simd" not in text


def test_phases_whose_number_stays_open_are_none() -> None:
    text = """
    def f(float(N,W) g, float(K) k) -> (y) {
        y(n,i) = 0.5 where n in 0:N, i in 0:2*W+K
        y(n,2*w+j) += g(n,w) * k(j)
    }"""
    f = tc.define(text).single()
    f.compile((tc.dynamic(9), tc.dynamic(20)), (tc.dynamic(3),))
    random = np.random.default_rng(0)
    for shapes in (((9, 20), (2,)), ((3, 7), (3,)), ((1, 1), (1,))):
        g, k = (random.standard_normal(shape, np.float32) for shape in shapes)
        assert compare(f.oracle(g, k)["y"], np.asarray(f(g, k))).ok
