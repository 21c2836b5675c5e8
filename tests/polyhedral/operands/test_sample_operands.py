"""What products read every second element of is copied without the others, and the proof refuses other copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

import tc
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import INDEX_TYPE, Binary, Literal, Read, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.relaid import CopiedOperand
from tc.polyhedral.operands.sample_operands import sample_operands
from tc.polyhedral.proof.rewrites.verify_copied_operands import find_wrong_copy
from tests.polyhedral.operands.results import require_right
from tests.polyhedral.support import specialized

Shapes = tuple[tuple[int, ...], ...]
WINDOW: Final = "def f(float(N,C,H,W) X, float(F,C,KH,KW) K) -> (Y) { Y(n,f,h,w) +=! X(n,c,2*h+i,2*w+j) * K(f,c,i,j) }"
PLAIN: Final = "def f(float(N,C,H,W) X, float(F,C) K) -> (Y) { Y(n,f,h,w) +=! X(n,c,2*h,3*w) * K(f,c) }"
EPILOGUE: Final = """
def f(float(N,C,H,W) X, float(F,C,1,1) K, float(F) B) -> (Y) {
    Y(n,f,h,w) +=! X(n,c,2*h+i,2*w+j) * K(f,c,i,j)
    Y(n,f,h,w) = fmax(Y(n,f,h,w) + B(f), 0)
}"""
TWICE: Final = """
def f(float(C,W) X, float(F,C) K, float(F,C) L) -> (Y, Z) {
    Y(f,w) +=! X(c,2*w) * K(f,c)
    Z(f,w) +=! X(c,2*w) * L(f,c)
}"""
ODD: Final = "def f(float(C,W) X, float(F,C) K) -> (Y) { Y(f,w) +=! X(c,2*w+1) * K(f,c) where w in 0:W/2 }"
PART: Final = "def f(float(C,W) X, float(F,C) K) -> (Y) { Y(f,w) +=! X(c,2*w) * K(f,c) where w in 0:4 }"
# Texts, shapes, and what is copied.
CASES: Final[dict[str, tuple[str, Shapes, tuple[str, ...]]]] = {
    "a window of one element": (
        WINDOW,
        ((2, 11, 9, 13), (17, 11, 1, 1)),
        ("X: S0 read a copy of elements in steps of (1, 1, 2, 2)",),
    ),
    "no window": (PLAIN, ((2, 11, 9, 13), (17, 11)), ("X: S0 read a copy of elements in steps of (1, 1, 2, 3)",)),
    "what follows": (
        EPILOGUE,
        ((1, 11, 8, 8), (17, 11, 1, 1), (17,)),
        ("X: S0 read a copy of elements in steps of (1, 1, 2, 2)",),
    ),
    "two products": (TWICE, ((9, 21), (20, 9), (20, 9)), ("X: S0, S1 read a copy of elements in steps of (1, 2)",)),
    "a window of several": (WINDOW, ((2, 11, 9, 13), (17, 11, 3, 3)), ()),
    "rows alone": (PLAIN.replace("3*w", "w"), ((2, 11, 9, 13), (17, 11)), ()),
    "few filters": (PLAIN, ((2, 11, 9, 13), (15, 11)), ()),
    "few channels": (PLAIN, ((2, 7, 9, 13), (17, 7)), ()),
    "elements between": (ODD, ((11, 20), (17, 11)), ()),
    "a part of the rows": (PART, ((64, 1000), (17, 64)), ()),
}


def made_of(before: Specialization) -> list[tuple[Specialization, CopiedOperand]]:
    return list(sample_operands(before))


@pytest.mark.parametrize("name", CASES)
def test_what_is_copied(name: str) -> None:
    text, shapes, expected = CASES[name]
    before = specialized(text, shapes)
    found = made_of(before)
    for after, made in found:
        assert find_wrong_copy(before, after, made) is None
        before = after
    assert tuple(str(made) for _, made in found) == expected


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_oracle(name: str) -> None:
    text, shapes, expected = CASES[name]
    said = require_right(text, shapes)
    assert all(line in said for line in expected)
    assert ("== sampled operands ==" in said) == bool(expected)


def test_no_operand_is_copied_where_none_may_be() -> None:
    arrays = [np.ones(shape, np.float32) for shape in CASES["no window"][1]]
    f = tc.define(PLAIN).single()
    assert "sampled operands" not in str(f.explain(*arrays, options=tc.CpuOptions(packed_operands=0)))
    assert "sampled operands" not in str(f.explain(*arrays, target="emulator"))


def _program(after: Specialization, change: Callable[[list[Statement]], list[Statement]]) -> Specialization:
    statements = tuple(change(list(after.program.statements)))
    return replace(after, program=replace(after.program, statements=statements))


def _later(copy: Statement) -> Statement:
    """Of the elements behind those that are read."""
    assert isinstance(copy.value, Read)
    *others, last = copy.value.subscripts
    behind = Binary(BinaryOperator.ADD, last, Literal(1, INDEX_TYPE), INDEX_TYPE)
    return replace(copy, value=replace(copy.value, subscripts=(*others, behind)))


def _shorter(copy: Statement) -> Statement:
    *others, last = copy.iterators
    return replace(copy, iterators=(*others, replace(last, end=Literal(6, INDEX_TYPE))))


def _of_doubles(product: Statement) -> Statement:
    match product.value:
        case Binary(operator, Read() as left, right, type):
            other = replace(left, type=ScalarType.FLOAT64)
            return replace(product, value=Binary(operator, other, right, type))
        case _:
            raise AssertionError(product)


def _exchanged(product: Statement) -> Statement:
    """Rows and columns of the copy."""
    match product.value:
        case Binary(operator, Read() as left, right, type):
            n, c, h, w = left.subscripts
            return replace(product, value=Binary(operator, replace(left, subscripts=(n, c, w, h)), right, type))
        case _:
            raise AssertionError(product)


MUTANTS: Final[dict[str, tuple[Callable[[list[Statement]], list[Statement]], Violation]]] = {
    "a part of it": (lambda own: [_shorter(own[0]), own[1]], Violation.NOT_LOADED),
    "elements between": (lambda own: [_later(own[0]), own[1]], Violation.NOT_LOADED),
    "too late": (lambda own: own[::-1], Violation.NOT_LOADED),
    "other elements": (lambda own: [own[0], _exchanged(own[1])], Violation.CHANGED),
    "another type": (lambda own: [own[0], _of_doubles(own[1])], Violation.CHANGED),
    "sums that go on": (lambda own: [own[0], replace(own[1], initialize=False)], Violation.CHANGED),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_other_copies_are_refused(name: str) -> None:
    change, violation = MUTANTS[name]
    before = specialized(WINDOW, ((2, 11, 13, 13), (17, 11, 1, 1)))
    ((after, made),) = made_of(before)
    found = find_wrong_copy(before, _program(after, change), made)
    assert found is not None
    assert found.violation is violation


@pytest.mark.parametrize("steps", [(1, 1, 2, 1), (1, 1, 2, 3), (1, 1, 4, 2)])
def test_other_steps_are_refused(steps: tuple[int, ...]) -> None:
    before = specialized(WINDOW, ((2, 11, 13, 13), (17, 11, 1, 1)))
    ((after, made),) = made_of(before)
    assert find_wrong_copy(before, after, replace(made, steps=steps)) is not None


def test_an_iterator_of_several_values_is_not_left_out() -> None:
    """The copy has the elements of a window of one; one of two reads others, too."""
    before = specialized(WINDOW, ((2, 11, 13, 13), (17, 11, 1, 1)))
    ((after, made),) = made_of(before)

    def wider(own: Specialization) -> Specialization:
        statements = tuple(_wider(one) if one.name == "S0" else one for one in own.program.statements)
        return replace(own, program=replace(own.program, statements=statements))

    assert find_wrong_copy(wider(before), wider(after), made) is not None


def _wider(product: Statement) -> Statement:
    *others, last = product.iterators
    return replace(product, iterators=(*others, replace(last, end=Literal(2, INDEX_TYPE))))
