"""Products that share loops run in loops of their own, and results are those of the oracle."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.polyhedral.cpu.distribute_products import distribute_products
from tc.polyhedral.ir.scop import build_scop
from tc.polyhedral.ir.tree import tree_text
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.schedule.schedule import schedule_scop
from tc.reference.compare import compare
from tc.targets.options import Fusion
from tests.polyhedral.support import MACHINE, specialized
from tests.turns import one_in

Shapes = tuple[tuple[int, ...], ...]
GATED: Final = """
def gated(float(B,K) x, float(N,K) u, float(N,K) v) -> (y) {
    a(i,n) +=! x(i,k) * u(n,k)
    b(i,n) +=! x(i,k) * v(n,k)
    y(i,n) = a(i,n) / (1 + exp(-a(i,n))) * b(i,n)
}"""
NORM: Final = """
def norm(float(B,K) x, float(N,K) w) -> (y) {
    s(i) +=! x(i,k) * x(i,k)
    h(i,k) = x(i,k) * rsqrt(s(i) / K + 1e-5)
    y(i,n) +=! h(i,k) * w(n,k)
    y(i,n) = fmax(y(i,n), 0)
}"""
MOMENTS: Final = "def moments(float(M,N) x) -> (s, q) { s(i) +=! x(i,j) q(i) +=! x(i,j) * x(i,j) }"
CHAINED: Final = """
def chained(float(B,K) x, float(K,K) u) -> (a, b) {
    a(i,n) +=! x(i,k) * u(n,k)
    b(i,n) +=! a(i,k) * u(n,k)
}"""
CASES: Final[dict[str, tuple[str, Shapes]]] = {
    "two products": (GATED, ((37, 130), (67, 130), (67, 130))),
    "a product behind a norm": (NORM, ((65, 260), (263, 260))),
    "a small product behind a norm": (NORM, ((65, 60), (63, 60))),
    "few rows": (NORM, ((9, 260), (263, 260))),
    "sums of what is read once": (MOMENTS, ((65, 260),)),
    "one behind the other": (CHAINED, ((65, 300), (300, 300))),
}


def trees(text: str, shapes: Shapes) -> tuple[str, str]:
    """Before and behind the pass."""
    with isl_context() as context:
        scop = build_scop(specialized(text, shapes), context)
        tree = schedule_scop(scop, Fusion.PRESERVE_PARALLEL)
        return tree_text(tree), tree_text(distribute_products(tree, scop))


def loops_of(text: str) -> list[str]:
    """The statements of every band."""
    return [",".join(re.findall(r"(S\d)\[", line)) for line in text.splitlines() if "->" in line]


def test_products_run_over_their_terms_one_after_the_other() -> None:
    before, after = (loops_of(text) for text in trees(*CASES["two products"]))
    assert "S0,S1" in before
    assert "S0,S1" not in after
    assert [own for own in after if own in ("S0", "S1")] == ["S0", "S1"]


def test_a_product_of_a_large_operand_leaves_the_loop_over_rows() -> None:
    before, after = trees(*CASES["a product behind a norm"])
    assert before != after
    assert not any("S0[" in line and "S2[" in line for line in after.splitlines() if "->" in line)


@pytest.mark.parametrize("name", ["a small product behind a norm", "few rows", "sums of what is read once"])
def test_what_stays_together(name: str) -> None:
    before, after = trees(*CASES[name])
    assert before == after


@one_in(2)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_oracle(name: str) -> None:
    text, shapes = CASES[name]
    rng = np.random.default_rng(0)
    f = tc.define(text).single()
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    found = f(*arrays)
    for own, value in zip(f.oracle(*arrays).values(), found if isinstance(found, tuple) else (found,), strict=True):
        assert compare(own, np.asarray(value)).ok


@pytest.mark.parametrize("name", CASES)
def test_every_pass_is_proven(name: str) -> None:
    text, shapes = CASES[name]
    map_program(specialized(text, shapes), tc.CpuOptions(), MACHINE, verify_every_pass=True)


def test_both_tiles_are_in_registers() -> None:
    text = tc.define(GATED).single().compile((128, 512), (256, 512), (256, 512), target="cpu:x86-64-v4").source
    for tensor in ("a", "b"):
        assert re.search(rf"t_tile\d_{tensor}_0_0 \+= ", text)
    assert "tc_float32x16 t_tile" in text


def test_maximal_fusion_leaves_them_together() -> None:
    options = tc.CpuOptions(schedule=tc.ScheduleOptions(fusion=Fusion.MAXIMAL))
    shapes = CASES["two products"][1]
    together = tc.define(GATED).single().compile(*shapes, options=options).source
    assert together != tc.define(GATED).single().compile(*shapes).source
