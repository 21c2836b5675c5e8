"""Expressions of derivatives, without the factors 1 and the terms 0 that rules leave behind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import Binary, Call, Cast, Expression, Literal, Select, Unary, iterators_in

_COMPARED: Final = (
    BinaryOperator.LESS,
    BinaryOperator.LESS_EQUAL,
    BinaryOperator.GREATER,
    BinaryOperator.GREATER_EQUAL,
    BinaryOperator.EQUAL,
    BinaryOperator.NOT_EQUAL,
)


def adjoint_type(type: ScalarType) -> ScalarType:
    """That of the adjoint of a floating value: those of halves are accumulated in float32."""
    return ScalarType.FLOAT64 if type is ScalarType.FLOAT64 else ScalarType.FLOAT32


def number(value: float, type: ScalarType) -> Literal:
    """A constant of a floating type."""
    return Literal(float(value), type)


def is_number(expression: Expression, value: float) -> bool:
    """Whether an expression is this constant."""
    return isinstance(expression, Literal) and not isinstance(expression.value, bool) and expression.value == value


def times(left: Expression, right: Expression) -> Expression:
    """A product, with conditions around it: what is 0 on a condition is so whatever the other factor is."""
    if is_number(left, 1):
        return right
    if is_number(right, 1):
        return left
    for factor, other in ((left, right), (right, left)):
        if is_number(factor, -1):
            return negated(other)
    if isinstance(left, Select) and is_number(left.otherwise, 0):
        return choice(left.condition, times(left.then, right), left.otherwise)
    match left, right:
        case Unary(UnaryOperator.NEGATE, inner), _:
            return negated(times(inner, right))
        case _, Unary(UnaryOperator.NEGATE, inner):
            return negated(times(left, inner))
        case _:
            return Binary(BinaryOperator.MULTIPLY, left, right, left.type)


def over(left: Expression, right: Expression) -> Expression:
    """A quotient."""
    if isinstance(left, Unary) and left.operator is UnaryOperator.NEGATE:
        return negated(over(left.operand, right))
    if isinstance(left, Select) and is_number(left.otherwise, 0):
        return choice(left.condition, over(left.then, right), left.otherwise)
    return left if is_number(right, 1) else Binary(BinaryOperator.DIVIDE, left, right, left.type)


def plus(left: Expression, right: Expression) -> Expression:
    """A sum."""
    if is_number(left, 0):
        return right
    if is_number(right, 0):
        return left
    if isinstance(right, Unary) and right.operator is UnaryOperator.NEGATE:
        return minus(left, right.operand)
    return Binary(BinaryOperator.ADD, left, right, left.type)


def minus(left: Expression, right: Expression) -> Expression:
    """A difference."""
    if is_number(right, 0):
        return left
    if is_number(left, 0):
        return negated(right)
    return Binary(BinaryOperator.SUBTRACT, left, right, left.type)


def negated(operand: Expression) -> Expression:
    """The number with the other sign."""
    match operand:
        case Unary(UnaryOperator.NEGATE, inner):
            return inner
        case Literal(value=value, type=type):
            return Literal(-value, type)
        case Select(condition, then, otherwise) if is_number(otherwise, 0):
            return choice(condition, negated(then), otherwise)
        case _:
            return Unary(UnaryOperator.NEGATE, operand, operand.type)


def choice(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    """``condition ? then : otherwise``."""
    return then if then == otherwise else Select(condition, then, otherwise, then.type)


def compared(operator: BinaryOperator, left: Expression, right: Expression) -> Expression:
    """A comparison."""
    assert operator in _COMPARED
    return Binary(operator, left, right, ScalarType.BOOL)


def converted(operand: Expression, type: ScalarType) -> Expression:
    """The value in another type; constants are written in it."""
    if operand.type is type:
        return operand
    if isinstance(operand, Literal) and operand.type.is_floating and type.is_floating:
        return Literal(operand.value, type)
    return Cast(operand, type)


def call(function: str, *arguments: Expression) -> Call:
    """A builtin of arguments of one type."""
    return Call(function, arguments, arguments[0].type)


def invariants_first(value: Expression) -> Expression:
    """The expression with what is invariant multiplied first: ``a(i,j) * b(i) * c`` as ``b(i) * c * a(i,j)``.

    Compilers move it out of the loop over ``j``, but must not associate products in another way themselves.  Only what
    is added up and chosen from is looked at: factors, conditions and arguments may be values of the forward, which have
    to be those that it has compared, bit for bit.
    """
    match value:
        case Select(condition, then, otherwise):
            return Select(condition, invariants_first(then), invariants_first(otherwise), value.type)
        case Binary(BinaryOperator.ADD | BinaryOperator.SUBTRACT as operator, left, right, type) if type.is_floating:
            return Binary(operator, invariants_first(left), invariants_first(right), type)
        case _:
            return _invariants_first(value)


def _invariants_first(value: Expression) -> Expression:
    factors = _factors(value)
    used = [iterators_in([factor]) for factor in factors]
    everything = frozenset[str]().union(*used)
    moving = [factor for factor, own in zip(factors, used, strict=True) if own == everything]
    still = [factor for factor, own in zip(factors, used, strict=True) if own != everything]
    together = frozenset[str]().union(*(own for own in used if own != everything))
    numbers = all(isinstance(factor, Literal) for factor in still)
    if not moving or numbers or len(still) < 2 or together == everything:
        return value
    invariant = _product(still)
    return _product([negated(invariant) if _is_negative(value) else invariant, *moving])


def _factors(value: Expression) -> list[Expression]:
    """Of a product of floating-point numbers, apart from its sign."""
    match value:
        case Unary(UnaryOperator.NEGATE, operand, type) if type.is_floating:
            return _factors(operand)
        case Binary(BinaryOperator.MULTIPLY, left, right, type) if type.is_floating:
            return [*_factors(left), *_factors(right)]
        case _:
            return [value]


def _is_negative(value: Expression) -> bool:
    match value:
        case Unary(UnaryOperator.NEGATE, operand, type) if type.is_floating:
            return not _is_negative(operand)
        case Binary(BinaryOperator.MULTIPLY, left, right, type) if type.is_floating:
            return _is_negative(left) is not _is_negative(right)
        case _:
            return False


def _product(factors: Sequence[Expression]) -> Expression:
    return reduce(lambda left, right: Binary(BinaryOperator.MULTIPLY, left, right, left.type), factors)
