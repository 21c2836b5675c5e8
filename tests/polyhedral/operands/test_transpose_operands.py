"""Operands that a product reads across memory are copied in another order, and the proof refuses other copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

import tc
from tc.language.program.program import INDEX_TYPE, Literal, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.relaid import CopiedOperand
from tc.polyhedral.operands.transpose_operands import transpose_operands
from tc.polyhedral.proof.rewrites.verify_copied_operands import find_wrong_copy
from tests.polyhedral.operands.results import require_right
from tests.polyhedral.support import specialized

TN: Final = "def f(float(K,M) A, float(K,N) B) -> (C) { C(m,n) +=! A(k,m) * B(k,n) }"
TWICE: Final = """
def f(float(K,M) A, float(K,N) B, float(K,N) D) -> (C, E) {
    C(m,n) +=! A(k,m) * B(k,n)
    E(m,n) +=! A(k,m) * D(k,n)
}"""
BATCHES: Final = "def f(float(B,K,M) A, float(B,K,N) V) -> (C) { C(b,m,n) +=! A(b,k,m) * V(b,k,n) }"
COMPUTED: Final = """
def f(float(K,M) A, float(K,N) B) -> (C) {
    t(k,m) = fmax(A(k,m), 0)
    C(m,n) +=! t(k,m) * B(k,n)
}"""
STEPS: Final = """
def f(float(K,M) A, float(K,N) B) -> (C) {
    C(m,n) = 0.0 where m in 0:M, n in 0:N
    for t in 0:3 { C(m,n) += A(k,m) * B(k,n) }
}"""
# What is copied, by which statements it is read, and shapes.
CASES: Final[dict[str, tuple[str, tuple[tuple[int, ...], ...], tuple[str, ...]]]] = {
    "a product": (TN, ((67, 130), (67, 70)), ("A: S0 read a copy with the dimensions in the order (1, 0)",)),
    "two of one operand": (
        TWICE,
        ((67, 130), (67, 70), (67, 70)),
        ("A: S0, S1 read a copy with the dimensions in the order (1, 0)",),
    ),
    "batches": (BATCHES, ((3, 67, 70), (3, 67, 70)), ("A: S0 read a copy with the dimensions in the order (0, 2, 1)",)),
    "what is computed": (
        COMPUTED,
        ((67, 130), (67, 70)),
        ("t: S1 read a copy with the dimensions in the order (1, 0)",),
    ),
    "few steps": (TN, ((63, 130), (63, 70)), ()),
    "few lanes": (TN, ((300, 130), (300, 31)), ()),
    "lanes of one tile": (TN, ((256, 130), (256, 64)), ()),
    "many steps": (
        TN,
        ((257, 130), (257, 64)),
        ("A: S0 read a copy with the dimensions in the order (1, 0)",),
    ),
    "few rows": (TN, ((67, 15), (67, 70)), ()),
    "rows that are near": (TN, ((200, 40), (200, 35)), ()),
    "read along memory": (
        TN.replace("A(k,m)", "A(m,k)").replace("float(K,M)", "float(M,K)"),
        ((130, 67), (67, 70)),
        (),
    ),
    "in steps": (STEPS, ((67, 130), (67, 70)), ()),
}


def made_of(before: Specialization) -> list[tuple[Specialization, CopiedOperand]]:
    return list(transpose_operands(before))


@pytest.mark.parametrize("name", CASES)
def test_what_is_copied(name: str) -> None:
    text, shapes, expected = CASES[name]
    before = specialized(text, shapes)
    for after, made in made_of(before):
        assert find_wrong_copy(before, after, made) is None
        before = after
    assert tuple(str(made) for _, made in made_of(specialized(text, shapes))) == expected


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_oracle(name: str) -> None:
    text, shapes, expected = CASES[name]
    said = require_right(text, shapes)
    assert all(line in said for line in expected)
    assert ("transposed operands" in said) == bool(expected)


def test_no_operand_is_copied_where_none_may_be() -> None:
    arrays = [np.ones(shape, np.float32) for shape in CASES["a product"][1]]
    f = tc.define(TN).single()
    assert "transposed operands" not in str(f.explain(*arrays, options=tc.CpuOptions(packed_operands=0)))
    assert "transposed operands" not in str(f.explain(*arrays, target="emulator"))


def test_what_is_written_behind_stays_where_it_is() -> None:
    text = """
    def f(float(K,M) A, float(K,N) B) -> (C, t) {
        t(k,m) = A(k,m)
        C(m,n) +=! t(k,m) * B(k,n)
        t(k,m) += 2 * A(k,m)
    }"""
    assert not made_of(specialized(text, ((67, 130), (67, 70))))


def _program(after: Specialization, change: Callable[[list[Statement]], list[Statement]]) -> Specialization:
    statements = tuple(change(list(after.program.statements)))
    return replace(after, program=replace(after.program, statements=statements))


def _shorter(copy: Statement) -> Statement:
    first, *others = copy.iterators
    return replace(copy, iterators=(replace(first, end=Literal(129, INDEX_TYPE)), *others))


MUTANTS: Final[dict[str, tuple[Callable[[Specialization], Specialization], Violation]]] = {
    "a part of it": (lambda s: _program(s, lambda own: [own[0], _shorter(own[1]), own[2]]), Violation.NOT_LOADED),
    "too late": (lambda s: _program(s, lambda own: [own[0], own[2], own[1]]), Violation.NOT_LOADED),
    "too early": (lambda s: _program(s, lambda own: [own[1], own[0], own[2]]), Violation.REORDERED),
    "not at all": (lambda s: _program(s, lambda own: [own[0], own[2]]), Violation.NOT_LOADED),
    "added up": (
        lambda s: _program(s, lambda own: [own[0], replace(own[1], reduction=own[2].reduction), own[2]]),
        Violation.NOT_LOADED,
    ),
    "in the order it had": (
        lambda s: _program(s, lambda own: [own[0], replace(own[1], subscripts=own[1].subscripts[::-1]), own[2]]),
        Violation.NOT_LOADED,
    ),
    "another product": (
        lambda s: _program(s, lambda own: [own[0], own[1], replace(own[2], initialize=False)]),
        Violation.CHANGED,
    ),
    "elements in one place": (
        lambda s: replace(
            s, layouts={**s.layouts, "t_transposed": replace(s.layouts["t_transposed"], strides=(66, 1))}
        ),
        Violation.OVERLAPPING,
    ),
    "another shape": (
        lambda s: replace(s, layouts={**s.layouts, "t_transposed": s.layouts["t"]}),
        Violation.OUT_OF_BOUNDS,
    ),
    "another type": (
        lambda s: replace(
            s, layouts={**s.layouts, "t_transposed": replace(s.layouts["t_transposed"], type=INDEX_TYPE)}
        ),
        Violation.WRONG_TYPE,
    ),
    "another tensor": (
        lambda s: replace(s, layouts={**s.layouts, "B": replace(s.layouts["B"], strides=(36, 1))}),
        Violation.CHANGED,
    ),
    "a result": (
        lambda s: replace(s, program=replace(s.program, results=("C", "t_transposed"))),
        Violation.CHANGED,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_other_copies_are_refused(name: str) -> None:
    change, violation = MUTANTS[name]
    before = specialized(COMPUTED, ((67, 130), (67, 70)))
    ((after, made),) = made_of(before)
    found = find_wrong_copy(before, change(after), made)
    assert found is not None
    assert found.violation is violation


def test_an_order_that_is_none_is_refused() -> None:
    before = specialized(TN, ((67, 130), (67, 70)))
    ((after, made),) = made_of(before)
    found = find_wrong_copy(before, after, replace(made, order=(1, 1)))
    assert str(found) == "a statement is not what the program says: (1, 1) is no order of the dimensions of A"
    found = find_wrong_copy(before, after, replace(made, steps=(1, 0)))
    assert str(found) == "a statement is not what the program says: (1, 0) are no steps along the dimensions of A"
