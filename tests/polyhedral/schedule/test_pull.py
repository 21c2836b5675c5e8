"""Reductions whose instances add to the same elements in pull form, and what the proof refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.language.program.program import INDEX_TYPE, IteratorReference, Literal, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.gpu.mapping.split_plan import Plan
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.pulled import PulledStatement
from tc.polyhedral.proof.rewrites.verify_pulled import find_wrong_pull
from tc.polyhedral.schedule.pull import pull_reductions
from tc.polyhedral.schedules import Schedules
from tc.reference.compare import compare
from tests.polyhedral.support import specialized
from tests.turns import one_in

FULL: Final = "def f(float(N) x, float(K) w) -> (y) { y(i + k) +=! x(i) * w(k) }"
# Texts and shapes, and what the iterators of the program are in terms of the new ones.
CASES: Final[dict[str, tuple[str, tuple[tuple[int, ...], ...], tuple[str, ...]]]] = {
    "full convolution": (FULL, ((37,), (5,)), ("S0: i = ik - k, k = k",)),
    "the window is longer": (FULL, ((5,), (37,)), ("S0: i = i, k = ki - i",)),
    "backwards": (
        "def f(float(N) x, float(K) w) -> (y) { y(i - k + K - 1) +=! x(i) * w(k) }",
        ((37,), (5,)),
        ("S0: i = ik + k - 4, k = k",),
    ),
    "transposed convolution": (
        "def f(float(N,C,H,W) I, float(C,F,3,2) K) -> (O) { O(n,f,h+i,w+j) +=! I(n,c,h,w) * K(c,f,i,j) }",
        ((2, 3, 7, 9), (3, 5, 3, 2)),
        ("S0: n = n, f = f, h = hi - i, i = i, w = wj - j, j = j, c = c",),
    ),
    "phases": (
        "def f(float(N,H) x, float(4) w) -> (y) { y(n, 2*h+i-1) +=! x(n,h) * w(i) where 2*h+i-1 in 0:2*H }",
        ((3, 11), (4,)),
        ("S0: n = n, h = hi - i0, i = 2*i0 + i1 + 1",),
    ),
    "phases of different lengths": (
        "def f(float(H) x, float(5) w) -> (y) { y(3*h+i) +=! x(h) * w(i) }",
        ((11,), (5,)),
        ("S0: h = hi - i0, i = 3*i0 + i1",),
    ),
    "backwards in phases": (
        "def f(float(H) x, float(5) w) -> (y) { y(2*h-i+4) +=! x(h) * w(i) }",
        ((11,), (5,)),
        ("S0: h = hi - i0, i = - 2*i0 - i1 + 4",),
    ),
    "overlap-add": (
        "def f(float(T,K) x) -> (y) { y(8*t + k) +=! x(t,k) }",
        ((9, 20),),
        ("S0: t = tk - k0, k = 8*k0 + k1",),
    ),
    "maxima": (
        "def f(float(N) x, float(K) w) -> (y) { y(i + k) max=! x(i) * w(k) }",
        ((37,), (5,)),
        ("S0: i = ik - k, k = k",),
    ),
    "a window as wide as the step": ("def f(float(H) x) -> (y) { y(2*h+i) +=! x(h) where i in 0:2 }", ((11,),), ()),
    "three iterators": ("def f(float(H,I,J) x) -> (y) { y(h+i+j) +=! x(h,i,j) }", ((4, 5, 6),), ()),
    "an iterator in two dimensions": (
        "def f(float(H,I) x, float(J,H) z) -> (y) { y(j,h) = z(j,h) y(h+i,h) += x(h,i) }",
        ((4, 5), (8, 4)),
        (),
    ),
    "one element each": ("def f(float(H,I) x) -> (y) { y(h) +=! x(h,i) }", ((4, 5),), ()),
    "a scatter": (
        "def f(float(H,I) x, int32(H) p) -> (y) { y(p(h),h+i) +=! x(h,i) where p(h) in 0:3 }",
        ((4, 5), (4,)),
        (),
    ),
}


def made_of(before: Specialization) -> list[tuple[Specialization, PulledStatement]]:
    return list(pull_reductions(before))


@pytest.mark.parametrize("name", CASES)
def test_pull_forms(name: str) -> None:
    text, shapes, expected = CASES[name]
    before = specialized(text, shapes)
    found = made_of(before)
    assert tuple(str(made) for _, made in found) == expected
    with isl_context() as context:
        for after, made in found:
            assert find_wrong_pull(before, after, made, context) is None
            before = after


@one_in(2)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_oracle(name: str) -> None:
    text, shapes, _ = CASES[name]
    rng = np.random.default_rng(0)
    f = tc.define(text).single()
    types = [np.dtype(f.program.tensor(own).type.value) for own in f.program.arguments]
    arrays = [
        rng.integers(0, 3, shape).astype(type) if type.kind == "i" else rng.standard_normal(shape).astype(type)
        for shape, type in zip(shapes, types, strict=True)
    ]
    (own,) = f.oracle(*arrays).values()
    assert compare(own, np.asarray(f(*arrays))).ok


def test_explanations_name_pull_forms() -> None:
    said = str(tc.define(FULL).single().explain((37,), (5,), target="cpu"))
    assert "== pull forms ==\nS0: i = ik - k, k = k\n" in said
    assert "pull forms" not in str(tc.define(FULL).single().explain((37,), (5,), target="emulator"))


def test_what_comes_in_is_added_to() -> None:
    f = tc.define("def f(float(N) x, float(K) w) -> (y) { y(i + k) += x(i) * w(k) }").single()
    x, w, y = np.arange(7, dtype=np.float32), np.ones(3, np.float32), np.full(9, 10, np.float32)
    np.testing.assert_array_equal(f(x, w, out=y.copy()), y + np.convolve(x, w))


def test_elements_between_phases_stay_as_they_are() -> None:
    """With a window that is shorter than the step some elements are in no phase."""
    f = tc.define("def f(float(H) x, float(L) z) -> (y) { y(l) = z(l) y(4*h+i) += x(h) where i in 0:5 }").single()
    x, z = np.ones(3, np.float32), np.zeros(13, np.float32)
    np.testing.assert_array_equal(f(x, z), [1, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 1])


def _changed(after: Specialization, change: Callable[[Statement], Statement]) -> Specialization:
    statements = tuple(map(change, after.program.statements))
    return replace(after, program=replace(after.program, statements=statements))


MUTANTS: Final[dict[str, tuple[Callable[[Statement], Statement], Violation]]] = {
    "a condition less": (lambda own: replace(own, conditions=own.conditions[1:]), Violation.MISSING),
    "an element less": (
        lambda own: replace(
            own,
            iterators=tuple(replace(i, end=Literal(40, INDEX_TYPE)) if i.name == "ik" else i for i in own.iterators),
        ),
        Violation.MISSING,
    ),
    "a term twice": (
        lambda own: replace(
            own, iterators=(*own.iterators, replace(own.iterators[-1], name="again", end=Literal(2, INDEX_TYPE)))
        ),
        Violation.REPEATED,
    ),
    "another element": (lambda own: replace(own, subscripts=(IteratorReference("k"),)), Violation.CHANGED),
    "another value": (lambda own: replace(own, value=Literal(1.0, own.value.type)), Violation.CHANGED),
    "from nothing": (lambda own: replace(own, initialize=False), Violation.CHANGED),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_other_instances_are_refused(name: str) -> None:
    change, violation = MUTANTS[name]
    before = specialized(FULL, ((37,), (5,)))
    ((after, made),) = made_of(before)
    with isl_context() as context:
        found = find_wrong_pull(before, _changed(after, change), made, context)
    assert found is not None
    assert found.violation is violation


def test_another_program_is_refused() -> None:
    before = specialized(FULL, ((37,), (5,)))
    ((after, made),) = made_of(before)
    with isl_context() as context:
        other = replace(after, program=replace(after.program, results=()))
        assert find_wrong_pull(before, other, made, context) is not None
        assert find_wrong_pull(before, after, replace(made, iterators={}), context) is not None


@pytest.mark.parametrize("first", [True, False])
def test_plans_with_and_without_pull_forms_are_kept_apart(first: bool) -> None:
    """Kernels of one program for processors and GPUs come from the same schedules, in any order."""
    specialization = specialized(FULL, ((7,), (3,)))
    with isl_context() as context:
        shared = Schedules(specialization, None)
        for pulls in (first, not first):
            plan = Plan((), pulls=pulls)
            found, alone = (own.scop(context, plan) for own in (shared, Schedules(specialization, None)))
            assert [str(own.domain) for own in found.statements] == [str(own.domain) for own in alone.statements]
            assert bool(shared.pulled(plan)) is pulls
