"""Constant folding of index expressions: variables are replaced by numbers, and the result is simplified."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from types import MappingProxyType
from typing import Final, assert_never

from tc.polyhedral.ir.loops import (
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    variables,
)

_FOLDED: Final[Mapping[IndexOperator, Callable[..., int]]] = MappingProxyType(
    {
        IndexOperator.ADD: lambda left, right: left + right,
        IndexOperator.SUBTRACT: lambda left, right: left - right,
        IndexOperator.MULTIPLY: lambda left, right: left * right,
        IndexOperator.NEGATE: lambda operand: -operand,
        IndexOperator.MINIMUM: min,
        IndexOperator.MAXIMUM: max,
        # Divisors are positive, and what is known of dividends holds wherever the expression is needed.
        IndexOperator.EXACT_DIVIDE: lambda left, right: left // right,
        IndexOperator.FLOOR_DIVIDE: lambda left, right: left // right,
        IndexOperator.NONNEGATIVE_DIVIDE: lambda left, right: left // right,
        IndexOperator.NONNEGATIVE_REMAINDER: lambda left, right: left % right,
        IndexOperator.ZERO_REMAINDER: lambda left, right: left % right,
        IndexOperator.AND: lambda left, right: int(bool(left) and bool(right)),
        IndexOperator.OR: lambda left, right: int(bool(left) or bool(right)),
        IndexOperator.SELECT: lambda condition, then, otherwise: then if condition else otherwise,
        IndexOperator.EQUAL: lambda left, right: int(left == right),
        IndexOperator.LESS: lambda left, right: int(left < right),
        IndexOperator.LESS_EQUAL: lambda left, right: int(left <= right),
        IndexOperator.GREATER: lambda left, right: int(left > right),
        IndexOperator.GREATER_EQUAL: lambda left, right: int(left >= right),
    }
)


class AtValues:
    """``at_values``, worked out once for the same object at the same values: copies then share what is equal in them.

    Expressions that it was asked about are kept.
    """

    def __init__(self) -> None:
        self._known: Final[
            dict[int, tuple[IndexExpression, tuple[str, ...], dict[tuple[int | None, ...], IndexExpression]]]
        ] = {}

    def __call__(self, expression: IndexExpression, values: Mapping[str, int]) -> IndexExpression:
        """The expression with these values in the place of variables."""
        if not values:
            return expression
        known = self._known.get(id(expression))
        if known is None:
            known = self._known[id(expression)] = expression, tuple(variables(expression)), {}
        _, names, found = known
        own = tuple(map(values.get, names))
        if own not in found:
            found[own] = at_values(expression, values)
        return found[own]


def at_values(expression: IndexExpression, values: Mapping[str, int]) -> IndexExpression:
    """The expression where the variables have these values; the very same object where it mentions none of them."""
    match expression:
        case IndexLiteral():
            return expression
        case IndexVariable(name):
            return IndexLiteral(values[name]) if name in values else expression
        case IndexOperation(operator, operands):
            inner = tuple([at_values(operand, values) for operand in operands])
            if all(map(is_, inner, operands)):
                return expression
            return _folded(operator, inner)
        case _:
            assert_never(expression)


def _folded(operator: IndexOperator, operands: tuple[IndexExpression, ...]) -> IndexExpression:
    numbers = [operand.value for operand in operands if isinstance(operand, IndexLiteral)]
    if len(numbers) == len(operands):
        return IndexLiteral(_FOLDED[operator](*numbers))
    match operator, operands:
        case IndexOperator.ADD, (IndexLiteral(0), other) | (other, IndexLiteral(0)):
            return other
        case IndexOperator.ADD, (IndexOperation(IndexOperator.ADD, (other, IndexLiteral(inner))), IndexLiteral(outer)):
            return _folded(operator, (other, IndexLiteral(inner + outer)))
        case IndexOperator.SUBTRACT, (other, IndexLiteral(0)):
            return other
        case IndexOperator.MULTIPLY, (IndexLiteral(0), _) | (_, IndexLiteral(0)):
            return IndexLiteral(0)
        case IndexOperator.MULTIPLY, (IndexLiteral(1), other) | (other, IndexLiteral(1)):
            return other
        case IndexOperator.AND, (IndexLiteral(value), other) | (other, IndexLiteral(value)):
            return other if value else IndexLiteral(0)
        case IndexOperator.OR, (IndexLiteral(value), other) | (other, IndexLiteral(value)):
            return IndexLiteral(1) if value else other
        case IndexOperator.SELECT, (IndexLiteral(value), then, otherwise):
            return then if value else otherwise
        case _:
            return IndexOperation(operator, operands)
