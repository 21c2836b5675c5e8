"""``AffineForm``: ``constant + sum of factor * term``, of whatever terms; and that of an expression."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Generic, Self, TypeVar

from tc.base.frozen import frozen
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import Binary, Expression, IteratorReference, Literal, Unary, iterators_in

Term = TypeVar("Term", bound=Hashable)


@frozen
class AffineForm(Generic[Term]):
    """``constant + sum of factor * term``; no factor is 0."""

    constant: int = 0
    factors: Mapping[Term, int] = field(default_factory=lambda: MappingProxyType({}))

    def plus(self, other: Self, factor: int = 1) -> Self:
        """``self + factor * other``."""
        if not other.factors:
            return type(self)(self.constant + factor * other.constant, self.factors)
        if not self.factors and not self.constant:
            return other.times(factor)
        factors = dict(self.factors)
        for term, own in other.factors.items():
            factors[term] = factors.get(term, 0) + factor * own
        return type(self)(self.constant + factor * other.constant, {t: f for t, f in factors.items() if f})

    def times(self, factor: int) -> Self:
        """``factor * self``."""
        if factor == 1:
            return self
        return type(self)(factor * self.constant, {t: factor * f for t, f in self.factors.items() if factor})


def affine_form(expression: Expression) -> AffineForm[Expression]:
    """An integer expression as an affine form; what is no sum, and no multiple of a number, is a term of its own."""
    match expression:
        case Literal(int() as value, _):
            return AffineForm(int(value))
        case Unary(UnaryOperator.NEGATE, operand):
            return affine_form(operand).times(-1)
        case Binary(BinaryOperator.ADD | BinaryOperator.SUBTRACT as operator, left, right):
            return affine_form(left).plus(affine_form(right), 1 if operator is BinaryOperator.ADD else -1)
        case Binary(BinaryOperator.MULTIPLY, left, right):
            first, second = affine_form(left), affine_form(right)
            if not second.factors:
                return first.times(second.constant)
            if not first.factors:
                return second.times(first.constant)
    return AffineForm(0, {expression: 1})


def coefficient(expression: Expression, iterator: str) -> int | None:
    """By how much an integer expression grows with the iterator; None where it is not affine in it."""
    found = 0
    for term, factor in affine_form(expression).factors.items():
        if isinstance(term, IteratorReference):
            found += factor if term.name == iterator else 0
        elif iterator in iterators_in((term,)):
            return None
    return found
