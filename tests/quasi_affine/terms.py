"""Index expressions as text and as numbers: Python's own integers are the judge of what isl decides."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from tc.language.algebra.fold import divide, remainder

Values: TypeAlias = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Name:
    """An iterator, a size or a scalar."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    value: int


@dataclass(frozen=True, slots=True)
class Operation:
    """``operator``: + - * / % min max, and the comparisons of conditions."""

    operator: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Choice:
    condition: Operation
    then: Term
    otherwise: Term


Term: TypeAlias = Name | Number | Operation | Choice


def text(term: Term, suffix: str = "") -> str:
    """The term in the language; ``suffix`` ends every name."""
    match term:
        case Name(name):
            return name + suffix
        case Number(value):
            return str(value) if value >= 0 else f"({value})"
        case Operation(("min" | "max") as function, left, right):
            return f"{function}({text(left, suffix)}, {text(right, suffix)})"
        case Operation(operator, left, right):
            return f"({text(left, suffix)} {operator} {text(right, suffix)})"
        case Choice(condition, then, otherwise):
            return f"({text(condition, suffix)} ? {text(then, suffix)} : {text(otherwise, suffix)})"
        case _:
            assert_never(term)


def names_in(term: Term) -> frozenset[str]:
    """All names of a term."""
    match term:
        case Name(name):
            return frozenset((name,))
        case Number():
            return frozenset()
        case Operation(_, left, right):
            return names_in(left) | names_in(right)
        case Choice(condition, then, otherwise):
            return names_in(condition) | names_in(then) | names_in(otherwise)
        case _:
            assert_never(term)


def evaluate(term: Term, values: Values) -> int:
    """What the term is, with C's division; by zero it gives 0."""
    match term:
        case Name(name):
            return values[name]
        case Number(value):
            return value
        case Operation(operator, left, right):
            return _operate(operator, evaluate(left, values), evaluate(right, values))
        case Choice(condition, then, otherwise):
            return evaluate(then if evaluate(condition, values) else otherwise, values)
        case _:
            assert_never(term)


def _operate(operator: str, left: int, right: int) -> int:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return divide(left, right)
        case "%":
            return remainder(left, right)
        case "min":
            return min(left, right)
        case "max":
            return max(left, right)
        case "<":
            return int(left < right)
        case ">=":
            return int(left >= right)
        case "==":
            return int(left == right)
        case "!=":
            return int(left != right)
        case _:
            raise ValueError(operator)


def random_term(rng: random.Random, iterators: Sequence[str], depth: int, known: tuple[str, str] = ("N", "s")) -> Term:
    """A quasi-affine term: products and divisors have no iterators.  ``known``: sizes or scalars that it may name."""
    if depth == 0:
        return Name(rng.choice(iterators)) if rng.random() < 0.7 else _constant(rng, known)
    operator = rng.choice(("+", "-", "+", "-", "*", "/", "%", "/", "%", "min", "max", "?"))
    left = random_term(rng, iterators, depth - 1, known)
    match operator:
        case "*":
            return Operation("*", left, Number(rng.choice((-2, -1, 2, 3))))
        case "/" | "%":
            return Operation(operator, left, _divisor(rng, known))
        case "?":
            condition = Operation(
                rng.choice(("<", ">=", "==")), random_term(rng, iterators, 0, known), _constant(rng, known)
            )
            return Choice(condition, left, random_term(rng, iterators, depth - 1, known))
        case _:
            return Operation(operator, left, random_term(rng, iterators, depth - 1, known))


def _constant(rng: random.Random, known: tuple[str, str]) -> Term:
    return rng.choice((Number(rng.randrange(0, 9)), Number(rng.randrange(0, 9)), Name(known[0]), Name(known[1])))


def _divisor(rng: random.Random, known: tuple[str, str]) -> Term:
    return rng.choice(
        (Number(rng.choice((2, 3, 4, 5, 9))), Number(rng.choice((2, 3, 4))), Name(known[0]), Name(known[1]))
    )
