"""Reductions to few results run in parts, with the same bits for any number of threads."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import tc
from tc.polyhedral.cpu.part_sums import part_sums
from tc.reference.compare import compare
from tests.polyhedral.support import specialized
from tests.turns import one_in

Shapes = tuple[tuple[int, ...], ...]
TOTAL: Final = "def total(float(M,N) x) -> (s) { s +=! x(i,j) }"
ROWS: Final = "def rows(float(M,N) x) -> (s) { s(i) +=! x(i,j) }"
CASES: Final[dict[str, tuple[str, Shapes, bool]]] = {
    "all elements": (TOTAL, ((512, 512),), True),
    "ragged": (TOTAL, ((509, 521),), True),
    "one row": ("def f(float(N) x) -> (s) { s +=! x(i) * x(i) }", ((270001,),), True),
    "a few results": (ROWS, ((3, 100003),), True),
    "a maximum": ("def f(float(M,N) x) -> (s) { s max=! x(i,j) }", ((509, 521),), True),
    "whole numbers": ("def f(int32(M,N) x) -> (s) { s +=! x(i,j) }", ((509, 521),), True),
    "many results": (ROWS, ((500, 521),), False),
    "few terms": (TOTAL, ((300, 400),), False),
    "short loops": ("def f(float(A,B,C,D) x) -> (s) { s +=! x(a,b,c,d) }", ((20, 20, 20, 20),), False),
    "what comes in": ("def f(float(M,N) x) -> (s) { s += x(i,j) }", ((512, 512),), False),
}


@pytest.mark.parametrize("name", CASES)
def test_which_reductions_run_in_parts(name: str) -> None:
    text, shapes, expected = CASES[name]
    assert bool(part_sums(specialized(text, shapes))) is expected


@one_in(2)
@pytest.mark.parametrize("name", [name for name in CASES if name != "what comes in"])
def test_results_are_those_of_the_oracle_whatever_the_threads(name: str) -> None:
    text, shapes, _ = CASES[name]
    rng = np.random.default_rng(0)
    f = tc.define(text).single()
    type = np.dtype(f.program.tensor(f.program.arguments[0]).type.value)
    (x,) = (rng.standard_normal(shape).astype(type) for shape in shapes)
    found = [np.asarray(f(x, options=tc.CpuOptions(threads=threads))) for threads in (1, 2, 4)]
    (own,) = f.oracle(x).values()
    assert compare(own, found[0]).ok
    assert all(other.tobytes() == found[0].tobytes() for other in found)


def test_tiles_that_are_given_are_those_of_the_program() -> None:
    options = tc.CpuOptions(schedule=tc.ScheduleOptions(tile=(16,)))
    text = tc.define(TOTAL).single().compile((512, 512), options=options).source
    assert "_parts" not in text
    assert "t_s_parts" in tc.define(TOTAL).single().compile((512, 512)).source
