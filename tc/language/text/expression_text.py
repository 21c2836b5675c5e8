"""Typed expressions back to syntax: checking the result gives the same typed expression again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

from tc.base.errors import Span
from tc.base.types import ScalarType
from tc.grammar import syntax
from tc.grammar.printer import print_expression
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.algebra.extents import named_extent
from tc.language.program.functions import FUNCTIONS
from tc.language.program.operators import ARITHMETIC, COMPARISONS
from tc.language.program.program import (
    INDEX_TYPE,
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
)

NOWHERE = Span(0, 0)
_BARE_TYPES = (ScalarType.INT64, ScalarType.FLOAT64)


def expression_text(expression: Expression) -> str:
    """The text of an expression, for messages and canonical programs; INT64 prints as index arithmetic."""
    return print_expression(index_syntax(expression) if expression.type is INDEX_TYPE else value_syntax(expression))


def value_syntax(expression: Expression) -> syntax.Expression:
    """Syntax of a value: literals carry their type unless what they meet, or their context, gives it to them."""
    match expression:
        case Literal(value, type) if not math.isfinite(value):
            # Infinities and NaN have no literals: `1e300 * 1e300` and `0.0 / 0.0` have their values.
            operator = BinaryOperator.DIVIDE if math.isnan(value) else BinaryOperator.MULTIPLY
            parts = (0.0, 0.0) if math.isnan(value) else (math.copysign(1e300, value), 1e300)
            return _apply(
                type.value,
                syntax.Binary(operator, syntax.Number(parts[0], NOWHERE), syntax.Number(parts[1], NOWHERE), NOWHERE),
            )
        case Literal(value, type):
            number = syntax.Number(int(value) if isinstance(value, bool) else value, NOWHERE)
            return number if type in _BARE_TYPES else _apply(type.value, number)
        case SizeReference(name):
            extent = named_extent(expression)
            return syntax.Name(name, NOWHERE) if extent is None else syntax.Extent(*extent, NOWHERE)
        case IteratorReference(name) | ScalarReference(name, _):
            return syntax.Name(name, NOWHERE)
        case Read(tensor, subscripts):
            return _apply(tensor, *map(index_syntax, subscripts)) if subscripts else syntax.Name(tensor, NOWHERE)
        case Unary(operator, operand):
            return syntax.Unary(operator, value_syntax(operand), NOWHERE)
        case Cast(operand, type):
            # A literal converts from the type that its spelling has.
            return _apply(type.value, value_syntax(operand))
        case Call(function, arguments):
            return _apply(function, *_operands(arguments))
        case Select(condition, then, otherwise):
            first, second = _operands((then, otherwise))
            return syntax.Conditional(value_syntax(condition), first, second, NOWHERE)
        case InRange(index, begin, end):
            inside = (
                syntax.Binary(BinaryOperator.LESS_EQUAL, index_syntax(begin), index_syntax(index), NOWHERE),
                syntax.Binary(BinaryOperator.LESS, index_syntax(index), index_syntax(end), NOWHERE),
            )
            return syntax.Binary(BinaryOperator.AND, *inside, NOWHERE)
        case Binary(operator, left, right):
            if operator in COMPARISONS and _reads_as_index(left) and _reads_as_index(right):
                return _index_comparison(operator, left, right)
            first, second = _operands((left, right))
            return syntax.Binary(operator, first, second, NOWHERE)
        case _:
            assert_never(expression)


def _operands(operands: Sequence[Expression]) -> list[syntax.Expression]:
    """Operands of one type: next to one that surely has it, literals need no cast."""
    typed = any(_is_strong(operand) for operand in operands)
    return [
        syntax.Number(operand.value, NOWHERE)
        if typed
        and isinstance(operand, Literal)
        and not isinstance(operand.value, bool)
        and math.isfinite(operand.value)
        else value_syntax(operand)
        for operand in operands
    ]


def _is_strong(expression: Expression) -> bool:
    """Whether the text of an expression has its type by itself, not as a weak number."""
    match expression:
        case Literal(_, type):
            return type is ScalarType.BOOL
        case IteratorReference() | SizeReference():
            return False
        case ScalarReference() | Read() | Cast() | InRange():
            return True
        case Unary(_, operand):
            return expression.type is ScalarType.BOOL or _is_strong(operand)
        case Binary(_, left, right):
            return expression.type is ScalarType.BOOL or _is_strong(left) or _is_strong(right)
        case Select(_, then, otherwise):
            return _is_strong(then) or _is_strong(otherwise)
        case Call(_, arguments):
            return any(map(_is_strong, arguments))
        case _:
            assert_never(expression)


def _index_comparison(operator: BinaryOperator, left: Expression, right: Expression) -> syntax.Expression:
    """A comparison whose text a checker takes for index arithmetic, which is INT64."""
    if left.type is INDEX_TYPE:
        return syntax.Binary(operator, index_syntax(left), index_syntax(right), NOWHERE)
    # A cast of one side, even to the type that it has, keeps the comparison in that type.
    first, second = _operands((left, right))
    return syntax.Binary(operator, _apply(left.type.value, first), second, NOWHERE)


def _reads_as_index(expression: Expression) -> bool:
    """Whether the text of an expression looks like index arithmetic: iterators, sizes, integer scalars, integers."""
    match expression:
        case Literal(_, type) | ScalarReference(_, type):
            return type.is_integer
        case IteratorReference() | SizeReference():
            return True
        case Cast(operand, type):
            return type is INDEX_TYPE and isinstance(operand, ScalarReference) and operand.type.is_integer
        case Unary(operator, operand):
            return operator is UnaryOperator.NEGATE and _reads_as_index(operand)
        case Binary(operator, left, right):
            return operator in ARITHMETIC and _reads_as_index(left) and _reads_as_index(right)
        case Call(function, arguments):
            return _keeps_integers(function) and all(map(_reads_as_index, arguments))
        case Select(_, then, otherwise):
            return _reads_as_index(then) and _reads_as_index(otherwise)
        case Read() | InRange():
            return False
        case _:
            assert_never(expression)


def _keeps_integers(name: str) -> bool:
    return name in FUNCTIONS and FUNCTIONS[name].keeps_integers


def index_syntax(expression: Expression) -> syntax.Expression:
    """Syntax of an INT64 expression in a subscript or a range, where conversions to INT64 go without saying."""
    match expression:
        case Unary(UnaryOperator.NEGATE, operand):
            return syntax.Unary(UnaryOperator.NEGATE, index_syntax(operand), NOWHERE)
        case Binary(operator, left, right) if operator not in COMPARISONS and expression.type is INDEX_TYPE:
            return syntax.Binary(operator, index_syntax(left), index_syntax(right), NOWHERE)
        case Select(condition, then, otherwise):
            return syntax.Conditional(value_syntax(condition), index_syntax(then), index_syntax(otherwise), NOWHERE)
        case Call(function, arguments) if _keeps_integers(function):
            return _apply(function, *map(index_syntax, arguments))
        case Cast(Read() | ScalarReference() | Cast() as operand, type) if (
            type is INDEX_TYPE and operand.type.is_integer
        ):
            return value_syntax(operand)
        case _:
            return value_syntax(expression)


def _apply(name: str, *arguments: syntax.Expression) -> syntax.Expression:
    return syntax.Apply(name, tuple(arguments), NOWHERE, NOWHERE)
