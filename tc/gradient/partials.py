"""Reverse mode through one expression: what each read in it contributes to the adjoint of what it reads.

The adjoint of the value is passed down to the operands, multiplied by partial derivatives.  A branch that is not
chosen contributes 0, and its derivative is not evaluated: conditions stand around it (Baydin et al., *Automatic
differentiation in machine learning: a survey*, 2018, section 3.2; for conditions, section 5.1 of JAX's FAQ on
``where``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import assert_never

from tc.base.errors import Diagnostic, GradientError
from tc.base.frozen import frozen
from tc.gradient.builtin_rules import REFUSED, RULES, At
from tc.gradient.terms import adjoint_type, converted, negated, number, over, times
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.algebra.fold import fold_constants
from tc.language.program.program import (
    Binary,
    Call,
    Cast,
    Expression,
    InRange,
    IteratorReference,
    Literal,
    Read,
    ScalarReference,
    Select,
    SizeReference,
    Unary,
    reads_in,
    rebuild,
)


@frozen
class Contribution:
    """What one read adds to the adjoint of the element that it reads, where its guards have the values named."""

    read: Read
    amount: Expression
    guards: tuple[tuple[Expression, bool], ...] = ()


def contributions(
    value: Expression,
    adjoint: Expression,
    active: AbstractSet[str],
    known: Mapping[Expression, Expression],
    *,
    saving: bool = False,
) -> list[Contribution]:
    """Of all reads of ``active`` tensors in a value, which are floating.

    ``adjoint``: of the value.  ``known``: expressions whose values are stored, and where.  ``saving``: they are read
    rather than what they are made of.  GradientError for a function without a derivative.
    """
    return list(_Walk(active, known, saving).visit(value, adjoint, ()))


@frozen
class _Walk:
    active: AbstractSet[str]
    known: Mapping[Expression, Expression]
    saving: bool

    def visit(
        self, value: Expression, adjoint: Expression, guards: tuple[tuple[Expression, bool], ...]
    ) -> Iterator[Contribution]:
        if not value.type.is_floating or not any(read.tensor in self.active for read in reads_in(value)):
            return
        match value:
            case Read():
                if value.tensor in self.active:
                    yield Contribution(value, adjoint, guards)
            case Unary(operator, operand):
                if operator is UnaryOperator.NEGATE:
                    yield from self.visit(operand, negated(adjoint), guards)
            case Cast(operand):
                if operand.type.is_floating:
                    yield from self.visit(operand, converted(adjoint, adjoint_type(operand.type)), guards)
            case Select(condition, then, otherwise):
                match fold_constants(condition):
                    case Literal(chosen):
                        yield from self.visit(then if chosen else otherwise, adjoint, guards)
                    case _:
                        yield from self.visit(then, adjoint, (*guards, (condition, True)))
                        yield from self.visit(otherwise, adjoint, (*guards, (condition, False)))
            case Binary():
                yield from self.binary(value, adjoint, guards)
            case Call():
                yield from self.call(value, adjoint, guards)
            case InRange() | Literal() | IteratorReference() | SizeReference() | ScalarReference():
                return
            case _:
                assert_never(value)

    def call(
        self, value: Call, adjoint: Expression, guards: tuple[tuple[Expression, bool], ...]
    ) -> Iterator[Contribution]:
        if value.function not in RULES:
            raise GradientError(Diagnostic(f"`{value.function}` has no gradient: {REFUSED[value.function]}"))
        own = tuple(map(self.factor, value.arguments))
        stored = self.known.get(value) if self.saving else None
        if stored is not None:
            stored = converted(stored, adjoint_type(value.type)) if stored.type is value.type else None
        amounts = RULES[value.function](At(adjoint, own, self.factor(value), stored))
        for argument, amount in zip(value.arguments, amounts, strict=True):
            if amount is not None:
                yield from self.visit(argument, amount, guards)

    def binary(
        self, value: Binary, adjoint: Expression, guards: tuple[tuple[Expression, bool], ...]
    ) -> Iterator[Contribution]:
        left, right = value.left, value.right
        match value.operator:
            case BinaryOperator.ADD:
                yield from self.visit(left, adjoint, guards)
                yield from self.visit(right, adjoint, guards)
            case BinaryOperator.SUBTRACT:
                yield from self.visit(left, adjoint, guards)
                yield from self.visit(right, negated(adjoint), guards)
            case BinaryOperator.MULTIPLY if left == right:
                own = self.factor(left)
                yield from self.visit(left, times(adjoint, times(number(2, own.type), own)), guards)
            case BinaryOperator.MULTIPLY:
                yield from self.visit(left, times(adjoint, self.factor(right)), guards)
                yield from self.visit(right, times(adjoint, self.factor(left)), guards)
            case BinaryOperator.DIVIDE:
                yield from self.visit(left, over(adjoint, self.factor(right)), guards)
                whole = times(adjoint, self.factor(value))
                yield from self.visit(right, negated(over(whole, self.factor(right))), guards)
            case BinaryOperator.REMAINDER:
                rule = RULES["fmod"](At(adjoint, (self.factor(left), self.factor(right)), self.factor(value)))
                for operand, amount in zip((left, right), rule, strict=True):
                    if amount is not None:
                        yield from self.visit(operand, amount, guards)
            case _:
                return

    def factor(self, value: Expression) -> Expression:
        """The value as a factor of an adjoint: where it is stored, if it is, and halves in float32."""
        found = self.stored(value)
        return converted(found, adjoint_type(value.type))

    def stored(self, value: Expression) -> Expression:
        own = self.known.get(value)
        return rebuild(value, self.stored) if own is None else own
