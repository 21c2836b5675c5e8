"""Branches that differ in names only: the loops are those that isl generates of all of them."""

from __future__ import annotations

import islpy as isl
import pytest

import tc
from tc.compiler import translate
from tc.language.isl.session import isl_context
from tc.polyhedral.generate import generate
from tc.polyhedral.generate.repeats import Reduced, without_repeats
from tc.polyhedral.generate.schedule_text import TreeText, to_text
from tc.polyhedral.ir.loop_text import loop_text
from tc.polyhedral.ir.scop import build_scop
from tc.polyhedral.ir.tree import Band, Filter, Leaf, Member, ScheduleTree, Sequence
from tc.polyhedral.schedule.schedule import schedule_scop, untransformed_tree
from tc.targets.options import Fusion
from tc.targets.target import parse_target
from tests.polyhedral.recurrences import RECURRENCES
from tests.polyhedral.support import specialized
from tests.turns import one_in

# Gates with two kinds of branches in turns.
GATES = """
def gates(float(T,B,I) x, float(3,H,I) W, float(3,H,H) U) -> (h) {
  h(0,b,i) = 0.5 where b in 0:B, i in 0:H
  for t in 0:T {
    r(b,i) +=! x(t,b,k) * W(0,i,k)
    r(b,i) += h(t,b,j) * U(0,i,j)
    z(b,i) +=! x(t,b,k) * W(1,i,k)
    z(b,i) += h(t,b,j) * U(1,i,j)
    n(b,i) +=! x(t,b,k) * W(2,i,k)
    n(b,i) += h(t,b,j) * U(2,i,j)
    h(t+1,b,i) = fmax(r(b,i), 0) * fmax(z(b,i), 0) + n(b,i)
  }
}
"""
# Statements that isl puts guards around, with one between them that has none.
STEPS = """
def steps(float(N,M) u0) -> (u) {
  u(0,i,j) = u0(i,j)
  for t in 0:4 {
    e(i,j) = u(t,i+1,j) where i in 1:N-1, j in 1:M-1
    w(i,j) = u(t,i-1,j) where i in 1:N-1, j in 1:M-1
    u(t+1,i,j) = u(t,i,j)
    d(i,j) = e(i,j) + w(i,j) where i in 1:N-1, j in 1:M-1
    u(t+1,i,j) += 0.1 * d(i,j) where i in 1:N-1, j in 1:M-1
  }
}
"""
# isl makes one condition with two sides of the guards between the first and the last statement, which are alike.
SIDES = """
def sides(float(N,N) A) -> (B) {
  C(i,j) = A(i,j) + 1.0
  D(i,j) = C(i,j) where i in 0:N, j in 0:min(i+1, N)
  D(i,j) = float(i + j) where i in 0:N, j in min(i+1, N):N
  B(i,j) = D(i,j) + A(i,j)
}
"""
TEXTS = {
    "sides": (SIDES, ((13, 13),)),
    "gates": (GATES, ((4, 5, 6), (3, 7, 6), (3, 7, 7))),
    "steps": (STEPS, ((9, 7),)),
}


def all_of_them(tree: TreeText, _barriers: object) -> Reduced:
    return Reduced(tree)


@pytest.mark.parametrize("name", [*TEXTS, *RECURRENCES])
def test_loops_are_those_of_all_branches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with isl_context() as context:
        scop = build_scop(specialized(*TEXTS[name]) if name in TEXTS else RECURRENCES[name], context)
        trees = (untransformed_tree(scop), *(schedule_scop(scop, fusion) for fusion in Fusion))
        found = [loop_text(generate.generate_loops(tree, context)) for tree in trees]
        monkeypatch.setattr(generate, "without_repeats", all_of_them)
        assert found == [loop_text(generate.generate_loops(tree, context)) for tree in trees]


@one_in(2)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("target", ["cpu:x86-64-v4", "emulator"])
def test_sources_are_those_of_all_branches(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With copies to buffers, whose names differ, too."""
    text, shapes = TEXTS[name]
    options = tc.CpuOptions() if target.startswith("cpu") else tc.GpuOptions()
    specialization = tc.define(text).single().specialize(*shapes)
    found = translate(specialization, options, parse_target(target)).source.text
    monkeypatch.setattr(generate, "without_repeats", all_of_them)
    assert found == translate(specialization, options, parse_target(target)).source.text


def two(first: str, second: str, context: isl.Context) -> TreeText:
    """Two branches with these functions in their bands."""
    names = {"A": first, "B": second}
    domain = isl.UnionSet.read_from_str(context, "{ A[i] : 0 <= i < 7; B[i] : 0 <= i < 7 }")
    filters = []
    for name, value in names.items():
        own = isl.UnionSet.read_from_str(context, f"{{ {name}[i] }}")
        member = Member(isl.UnionPwAff.read_from_str(context, f"{{ {name}[i] -> [{value}] }}"), coincident=False)
        filters.append(Filter(own, Band((member,), permutable=False, child=Leaf())))
    return to_text(ScheduleTree(domain, Sequence(tuple(filters))))


def test_what_differs_is_no_repeat() -> None:
    with isl_context() as context:
        assert without_repeats(two("i", "-i", context), frozenset()).twins == {}
        assert len(without_repeats(two("-i", "-i", context), frozenset()).tree.domain.own) == 1


def test_sequences_with_barriers_keep_their_branches() -> None:
    with isl_context() as context:
        assert without_repeats(two("i", "i", context), frozenset({"B"})).twins == {}
