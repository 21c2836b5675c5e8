"""Sums that cannot be cut are found before their loops are generated, and only those."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import islpy as isl
import pytest

from tc.language.isl.session import isl_context
from tc.language.program.specialization import Specialization
from tc.polyhedral import pipeline
from tc.polyhedral.attempts import Attempt, next_attempt
from tc.polyhedral.generate.long_sums import long_sums
from tc.polyhedral.generate.obstacles import LongSums, Obstacle
from tc.polyhedral.ir.scop import Scop, most_terms
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.pipeline import MappedProgram, map_program
from tc.targets.machine import Machine
from tc.targets.options import CpuOptions, GpuOptions, Options, ScheduleOptions
from tests.polyhedral.support import MATMUL, machine_for, specialized
from tests.turns import one_in

COLUMNS = "def columns(float(M,N) x) -> (s) { s(n) +=! x(m,n) }"
ROWS = "def rows(float(M,N) x) -> (s) { s(m) +=! x(m,n) }"
STEPS = (
    "def f(float(T,N) x, float(N,N) A) -> (y) "
    "{{ y(i) = x(0,i) z(i) = x(0,i) for t in 1:T {{ {} y(i) = y(i) + tanh(z(i)) }} }}"
)
BARE = CpuOptions(ScheduleOptions(tile=()), register_tile=(), register_accumulators=0, vectorize=False)
TILED = CpuOptions(ScheduleOptions(tile=(4, 8, 16)), register_tile=(), register_accumulators=0)
STRIPS = CpuOptions(ScheduleOptions(tile=(8, 16)), register_tile=(), register_accumulators=0, vectorize=False)
NOTHING_PRIVATE = GpuOptions(ScheduleOptions(tile=(8, 8, 4)), block=(4, 2), split_k_threads=(), register_accumulators=0)
SHARED_BY_BLOCKS = GpuOptions(split_k_threads=(), split_k_blocks=40, register_accumulators=0, shared_memory=0)

CASES: dict[str, tuple[str, tuple[tuple[int, ...], ...], Options, set[str]]] = {
    "products in a variable": (MATMUL, ((9, 70), (70, 20)), BARE, set()),
    "products": (MATMUL, ((9, 70), (70, 20)), TILED, {"S0"}),
    "few products": (MATMUL, ((9, 64), (64, 20)), TILED, set()),
    "columns": (COLUMNS, ((33, 20),), STRIPS, {"S0"}),
    "few rows": (COLUMNS, ((32, 20),), STRIPS, set()),
    "rows in a variable": (ROWS, ((20, 500),), BARE, set()),
    "points of a thread": (MATMUL, ((40, 70), (70, 20)), NOTHING_PRIVATE, {"S0"}),
    "steps that begin anew": (STEPS.format("z(i) +=! y(j) * A(i,j)"), ((90, 20), (20, 20)), BARE, set()),
    "steps that set what they add to": (
        STEPS.format("z(i) = x(t,i) z(i) += y(j) * A(i,j)"),
        ((90, 20), (20, 20)),
        BARE,
        set(),
    ),
    "steps that go on": (STEPS.format("z(i) += y(j) * A(i,j)"), ((90, 20), (20, 20)), BARE, {"S2"}),
    "totals of blocks": (COLUMNS, ((4_000, 20),), SHARED_BY_BLOCKS, set()),
}


Found: TypeAlias = tuple[MappedProgram, list[Obstacle], set[str]]


def mapped(monkeypatch: pytest.MonkeyPatch, name: str, *, early: bool) -> Found:
    """The program, what its attempts met, and what the trees say of it."""
    met: list[Obstacle] = []
    seen: set[str] = set()

    def noted(specialization: Specialization, machine: Machine, attempt: Attempt, obstacle: Obstacle) -> Attempt:
        met.append(obstacle)
        return next_attempt(specialization, machine, attempt, obstacle)

    def found(tree: ScheduleTree, scop: Scop) -> frozenset[str]:
        seen.update(names := long_sums(tree, scop))
        return names if early else frozenset()

    text, shapes, options, _ = CASES[name]
    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "next_attempt", noted)
        patched.setattr(pipeline, "long_sums", found)
        return map_program(specialized(text, shapes), options, machine_for(options)), met, seen


@one_in(2)
@pytest.mark.parametrize("name", CASES)
def test_the_tree_says_what_the_loops_would(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    early, met, seen = mapped(monkeypatch, name, early=True)
    late, later, _ = mapped(monkeypatch, name, early=False)
    assert seen == CASES[name][-1]
    assert early.loops.root == late.loops.root
    assert met == later
    assert all(isinstance(one, LongSums) and seen <= one.statements for one in met)


def test_open_sizes_are_left_to_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[frozenset[str]] = []

    def opened(tree: ScheduleTree, scop: Scop) -> frozenset[str]:
        seen.extend([long_sums(tree, scop), long_sums(tree, replace(scop, sizes=(("N", 20),)))])
        return seen[-2]

    text, shapes, options, _ = CASES["columns"]
    monkeypatch.setattr(pipeline, "long_sums", opened)
    map_program(specialized(text, shapes), options, machine_for(options))
    assert seen[:2] == [frozenset({"S0"}), frozenset()]


@pytest.mark.parametrize(
    ("write", "terms"),
    [
        ("{ S[i, j] -> y[i] : 0 <= i < 5 and 0 <= j < 7 }", 7),
        ("{ S[i, j] -> y[] : 0 <= i < 5 and 0 <= j < 7 }", 35),
        ("{ S[i, j] -> y[i] : 0 <= i < 5 and 0 <= j <= i }", 5),
        ("{ S[i, j] -> y[i + j] : 0 <= i < 5 and 0 <= j < 3 }", 3),
        ("{ S[i] -> y[floor(i/2)] : 0 <= i < 9 }", 2),
        ("{ S[i] -> y[i] : 0 <= i < 9 }", 1),
        ("{ S[i] -> y[i] : 1 = 0 }", 0),
        ("[N] -> { S[i, j] -> y[i] : 0 <= i < 5 and 0 <= j < N and N <= 12 }", 12),
        ("[N] -> { S[i, j] -> y[i] : 0 <= i < 5 and 0 <= j < N }", None),
    ],
)
def test_no_element_has_more_terms(write: str, terms: int | None) -> None:
    with isl_context() as context:
        assert most_terms(isl.Map.read_from_str(context, write)) == terms
        steps = write.replace("[i", "[t, i", 1).replace(" : ", " : 0 <= t < 4 and ")
        assert most_terms(isl.Map.read_from_str(context, steps), 1) == terms


CONVOLUTION = """
def gconv(float(N,G,C,H,W) I, float(G,F,C,KH,KW) W1, float(G,F) B) -> (O) {
  O(n,g,o,h,w) +=! I(n,g,c,h+kh,w+kw) * W1(g,o,c,kh,kw)
  O(n,g,o,h,w) = O(n,g,o,h,w) + B(g,o)
}
"""


def test_sums_of_few_terms_stay_in_float32() -> None:
    """Of ragged tiles that threads share, loops do not show that a sum has a few terms, but its statement does."""
    schedule = ScheduleOptions(tile=(13, 2, 32, 3, 13, 16, 7), unroll=32)
    options = GpuOptions(schedule, block=(13, 3, 8), split_k_threads=(4,), register_accumulators=16, stages=1)
    program = specialized(CONVOLUTION, ((1, 4, 8, 5, 28), (4, 8, 8, 3, 3), (4, 8)))
    found = map_program(program, options, machine_for(options)).attempt
    assert found.plan.wide == frozenset()
    assert all(decision.option != "accumulator" for decision in found.decisions)
