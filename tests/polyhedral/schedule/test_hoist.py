"""What many instances share is computed once: which parts of values, that kernels are right, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

import tc
from tc.language.program.program import Binary, Literal, Reduction, Role, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.hoisted import Hoisted
from tc.polyhedral.proof.rewrites.verify_hoisted import find_wrong_hoisting
from tc.polyhedral.schedule.hoist import hoist_invariants
from tc.reference.compare import compare
from tests.polyhedral.support import specialized

Shapes = tuple[tuple[int, ...], ...]
ROOTS: Final = "def f(float(C,P) x, float(P) s) -> (y) { y(c,p) = x(c,p) * rsqrt(s(p) + 1) }"
# Texts, shapes, and how many parts are computed once.
CASES: Final[dict[str, tuple[str, Shapes, int]]] = {
    "a root": (ROOTS, ((9, 21), (21,)), 1),
    "a quotient": ("def f(float(C,P) x, float(P) s) -> (y) { y(c,p) = x(c,p) + 1 / s(p) }", ((9, 21), (21,)), 1),
    "two parts": (
        "def f(float(C,P) x, float(P) s) -> (y) { y(c,p) = x(c,p) * exp(s(p)) + x(c,p) * log(s(p)) }",
        ((9, 21), (21,)),
        2,
    ),
    "twice the same": (
        "def f(float(C,P) x, float(P) s) -> (y) { y(c,p) = x(c,p) * exp(s(p)) + exp(s(p)) * x(c,p) }",
        ((9, 21), (21,)),
        1,
    ),
    "terms of a sum": ("def f(float(C,P) x, float(P) s) -> (y) { y(p) +=! x(c,p) * exp(s(p)) }", ((9, 21), (21,)), 1),
    "two dimensions": (
        "def f(float(N,C,H,W) x, float(N,H,W) s) -> (y) { y(n,c,h,w) = x(n,c,h,w) * sqrt(s(n,h,w)) }",
        ((2, 9, 3, 7), (2, 3, 7)),
        1,
    ),
    "the same in all lanes": (
        "def f(float(C,P) x, float(C) s) -> (y) { y(c,p) = x(c,p) * rsqrt(s(c) + 1) }",
        ((9, 21), (9,)),
        0,
    ),
    "few uses": (ROOTS, ((7, 21), (21,)), 0),
    "nothing costly": (ROOTS.replace("rsqrt(s(p) + 1)", "max(s(p) + 1, 0.0)"), ((9, 21), (21,)), 0),
    "halves": (ROOTS.replace("float", "float16"), ((9, 21), (21,)), 0),
    "in some instances": (
        "def f(float(C,P) x, float(P) s) -> (y) { y(c,p) = x(c,p) > 0 ? rsqrt(s(p)) : 0.0 }",
        ((9, 21), (21,)),
        0,
    ),
    "what data choose": (
        "def f(float(C,P) x, float(P) s, int32(P) i) -> (y) { y(c,p) = x(c,p) * exp(s(i(p))) where exists s(i(p)) }",
        ((9, 21), (21,), (21,)),
        0,
    ),
}


def _parts(before: Specialization) -> list[tuple[Specialization, Hoisted]]:
    return list(hoist_invariants(before))


@pytest.mark.parametrize("name", CASES)
def test_which_parts_are_computed_once(name: str) -> None:
    text, shapes, count = CASES[name]
    before = specialized(text, shapes)
    found = _parts(before)
    assert len(found) == count
    for after, done in found:
        assert find_wrong_hoisting(before, after, done) is None
        assert str(done) == f"{done.statement}: {done.tensor} is computed once, by {done.made}"
        before = after


@pytest.mark.parametrize("name", [name for name, (_, _, count) in CASES.items() if count])
def test_results_are_right(name: str) -> None:
    text, shapes, _ = CASES[name]
    f = tc.define(text).single()
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 2, shape).astype(np.float32) for shape in shapes]
    (expected,) = f.oracle(*arrays).values()
    for options in (tc.CpuOptions(), tc.CpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL), threads=2)):
        comparison = compare(expected, np.asarray(f(*arrays, options=options)))
        assert comparison.ok, comparison


def test_nothing_is_read_that_no_instance_reads() -> None:
    """Without iterations there are no values to share."""
    assert not _parts(specialized(ROOTS, ((0, 21), (21,))))
    before = specialized(ROOTS, ((9, 21), (21,)))
    ((after, done),) = _parts(before)
    empty = specialized(ROOTS, ((0, 21), (21,)))
    statements = tuple(
        replace(own, iterators=(replace(own.iterators[0], end=Literal(0, own.iterators[0].end.type)), own.iterators[1]))
        if own.name == done.statement
        else own
        for own in after.program.statements
    )
    changed = replace(after, program=replace(after.program, statements=statements))
    assert find_wrong_hoisting(empty, changed, done) is not None


def _changed(after: Specialization, name: str, change: Callable[[Statement], Statement]) -> Specialization:
    statements = tuple(change(own) if own.name == name else own for own in after.program.statements)
    return replace(after, program=replace(after.program, statements=statements))


def _other_value(own: Statement) -> Statement:
    match own.value:
        case Binary(operator, left, right, type):
            return replace(own, value=Binary(operator, right, left, type))
        case value:
            return replace(own, value=Literal(1.0, value.type))


MUTANTS: Final[dict[str, tuple[bool, Callable[[Statement], Statement]]]] = {
    "another value": (True, _other_value),
    "another value that reads it": (False, _other_value),
    "a sum": (True, lambda own: replace(own, reduction=Reduction.ADD)),
    "the sum of what was a value": (False, lambda own: replace(own, reduction=Reduction.ADD)),
    "no loop": (True, lambda own: replace(own, iterators=())),
    "another target": (True, lambda own: replace(own, target="y")),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_other_programs_are_refused(name: str) -> None:
    is_made, change = MUTANTS[name]
    before = specialized(ROOTS, ((9, 21), (21,)))
    ((after, done),) = _parts(before)
    mutant = _changed(after, done.made if is_made else done.statement, change)
    assert find_wrong_hoisting(before, mutant, done) is not None


def test_the_order_and_the_declarations_are_part_of_the_proof() -> None:
    before = specialized(ROOTS, ((9, 21), (21,)))
    ((after, done),) = _parts(before)
    program = after.program
    *tensors, made = program.tensors
    inputs = (*tensors, replace(made, role=Role.INPUT))
    others = (
        replace(after, program=replace(program, statements=program.statements[::-1])),
        replace(after, program=replace(program, tensors=inputs)),
        replace(after, layouts={**after.layouts, done.tensor: after.layouts["x"]}),
        replace(after, layouts={**after.layouts, "x": after.layouts["s"]}),
        replace(after, program=replace(program, results=())),
    )
    assert all(find_wrong_hoisting(before, other, done) is not None for other in others)
    assert find_wrong_hoisting(after, after, done) is not None


def test_explanations_name_what_is_computed_once() -> None:
    said = str(tc.define(ROOTS).single().explain((9, 21), (21,)))
    assert "== invariants ==\nS0: y_part is computed once, by S0_part\n" in said
