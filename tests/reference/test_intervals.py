"""Intervals of indices hold every value that an index takes, and are exact where subscripts are simple."""

from __future__ import annotations

import random
from itertools import product
from typing import assert_never

import pytest

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import INDEX_TYPE, Binary, Call, Expression, IteratorReference, Literal, Select
from tc.reference.intervals import index_interval
from tests.quasi_affine.terms import Choice, Name, Number, Operation, Term, evaluate, random_term

INDEX = Name("i")
POSITIONS = {"i": 0, "j": 1}


def expression_of(term: Term) -> Expression:
    """The term as the language has it."""
    match term:
        case Name(name):
            return IteratorReference(name)
        case Number(value):
            return Literal(value, INDEX_TYPE)
        case Operation(("min" | "max") as function, left, right):
            return Call(function, (expression_of(left), expression_of(right)), INDEX_TYPE)
        case Operation(operator, left, right):
            found = BinaryOperator(operator)
            type = ScalarType.BOOL if operator in ("<", ">=", "==", "!=") else INDEX_TYPE
            return Binary(found, expression_of(left), expression_of(right), type)
        case Choice(condition, then, otherwise):
            return Select(expression_of(condition), expression_of(then), expression_of(otherwise), INDEX_TYPE)
        case _:
            assert_never(term)


@pytest.mark.parametrize("seed", range(4))
def test_intervals_hold_all_values(seed: int) -> None:
    rng = random.Random(seed)
    known = 0
    for _ in range(300):
        term = random_term(rng, ["i", "j"], rng.choice((1, 2, 3)), ("i", "j"))
        box = tuple(range(first := rng.randrange(12), first + rng.randrange(1, 7)) for _ in POSITIONS)
        values = [evaluate(term, {"i": i, "j": j}) for i, j in product(*box)]
        found = index_interval(expression_of(term), POSITIONS, box)
        known += found is not None
        assert found is None or (found[0] <= min(values) and max(values) <= found[1]), term
    assert known > 150


SIMPLE: tuple[tuple[Term, tuple[int, int]], ...] = (
    (Operation("/", INDEX, Number(4)), (2, 3)),
    (Operation("%", INDEX, Number(16)), (10, 14)),
    (Operation("%", Operation("+", INDEX, Number(7)), Number(16)), (1, 5)),
    (Operation("%", INDEX, Number(12)), (0, 11)),
    (Operation("-", Number(20), Operation("/", INDEX, Number(2))), (13, 15)),
    (Operation("min", INDEX, Number(12)), (10, 12)),
    (Operation("%", Operation("-", INDEX, Number(30)), Number(16)), (-4, 0)),
    (Operation("%", INDEX, Number(0)), (0, 0)),
)


@pytest.mark.parametrize(("term", "expected"), SIMPLE)
def test_intervals_are_exact_where_they_can_be(term: Term, expected: tuple[int, int]) -> None:
    assert index_interval(expression_of(term), POSITIONS, (range(10, 15), range(1))) == expected


def test_what_may_wrap_has_no_interval() -> None:
    large = Literal(2**62, INDEX_TYPE)
    doubled = Binary(BinaryOperator.ADD, large, Call("max", (large, IteratorReference("i")), INDEX_TYPE), INDEX_TYPE)
    assert index_interval(doubled, POSITIONS, (range(3), range(1))) is None
