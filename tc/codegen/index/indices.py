"""Index expressions of loops and guards as C text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Final, assert_never

from tc.base.types import ScalarType
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, Precedence, call, cast, conditional, infix, named, prefix
from tc.polyhedral.analysis.ranges import Range, Ranges, ranges_within
from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral, IndexOperation, IndexOperator, IndexVariable, Loop

_INFIX: Final = {
    IndexOperator.ADD: "+",
    IndexOperator.SUBTRACT: "-",
    IndexOperator.MULTIPLY: "*",
    IndexOperator.EXACT_DIVIDE: "/",
    IndexOperator.NONNEGATIVE_DIVIDE: "/",
    IndexOperator.NONNEGATIVE_REMAINDER: "%",
    IndexOperator.ZERO_REMAINDER: "%",
    IndexOperator.AND: "&&",
    IndexOperator.OR: "||",
    IndexOperator.EQUAL: "==",
    IndexOperator.LESS: "<",
    IndexOperator.LESS_EQUAL: "<=",
    IndexOperator.GREATER: ">",
    IndexOperator.GREATER_EQUAL: ">=",
}
_FUNCTIONS: Final = {
    IndexOperator.MINIMUM: "tc_min",
    IndexOperator.MAXIMUM: "tc_max",
    IndexOperator.FLOOR_DIVIDE: "tc_floor_divide",
}
_EXTREMES: Final = (IndexOperator.MINIMUM, IndexOperator.MAXIMUM)


_LEAST: Final = ScalarType.INT64.minimum
_LEAST_NARROW: Final = ScalarType.INT32.minimum
_MOST_NARROW: Final = ScalarType.INT32.maximum


class WideIndexError(Exception):
    """An index, or something on the way to it, may not fit the index type."""


def require_fit(expression: IndexExpression, ranges: Ranges, dialect: Dialect) -> None:
    """WideIndexError unless everything that is computed for the expression fits the dialect's index type.

    Offsets of 64 bits always do: every tensor lies in memory.
    """
    if dialect.narrow:
        for found in ranges_within(expression, ranges):
            require_range(found, expression, dialect)


def require_range(values: Range, computed: object, dialect: Dialect) -> None:
    """WideIndexError unless all of the values, which are computed for something, fit the dialect's index type."""
    if dialect.narrow and not (values.least >= _LEAST_NARROW and values.most <= _MOST_NARROW):
        raise WideIndexError(str(computed))


def index_fragment(expression: IndexExpression, variables: Mapping[str, Fragment], dialect: Dialect) -> Fragment:
    """The expression as text of the index type, with these texts for its variables."""
    match expression:
        case IndexLiteral(value):
            return index_literal(value)
        case IndexVariable(name):
            return variables[name]
        case IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (dividend, IndexLiteral(divisor))) if (
            dialect.masks and not isinstance(dividend, IndexLiteral) and divisor & (divisor - 1) == 0
        ):
            return infix("&", index_fragment(dividend, variables, dialect), index_literal(divisor - 1))
        case IndexOperation(operator, operands):
            if operator is IndexOperator.ADD and (difference := _difference(operands)) is not None:
                return infix("-", *(index_fragment(operand, variables, dialect) for operand in difference))
            fragments = tuple(index_fragment(operand, variables, dialect) for operand in operands)
            if all(isinstance(operand, IndexLiteral) for operand in operands):
                # Arithmetic on plain literals would be done in int.
                fragments = tuple(cast(dialect.index, fragment) for fragment in fragments)
            return _operation(operator, fragments, dialect)
        case _:
            assert_never(expression)


def _difference(operands: tuple[IndexExpression, ...]) -> tuple[IndexExpression, IndexExpression] | None:
    """What people write as a difference: isl writes ``x + -1``, and ``-16 * x + 100`` for ``100 - 16 * x``."""
    match operands:
        case left, IndexLiteral(value) if value < 0:
            return left, IndexLiteral(-value)
        case IndexOperation(IndexOperator.MULTIPLY, (IndexLiteral(factor), left)), right if factor < 0:
            return right, IndexOperation(IndexOperator.MULTIPLY, (IndexLiteral(-factor), left))
        case _:
            return None


def index_literal(value: int) -> Fragment:
    """A literal; of type int where it fits, so it must stand beside an operand of the index type."""
    if value == _LEAST:
        return named("INT64_MIN")
    return Fragment(str(value), Precedence.PREFIX if value < 0 else Precedence.POSTFIX)


def after(expression: IndexExpression) -> IndexExpression:
    """``expression + 1``: the exclusive end that belongs to an inclusive one."""
    match expression:
        case IndexLiteral(value):
            return IndexLiteral(value + 1)
        case IndexOperation(IndexOperator.MINIMUM | IndexOperator.MAXIMUM as operator, operands):
            return IndexOperation(operator, tuple(after(operand) for operand in operands))
        case IndexOperation(IndexOperator.ADD | IndexOperator.SUBTRACT as operator, (left, IndexLiteral(value))):
            moved = value + 1 if operator is IndexOperator.ADD else value - 1
            return left if moved == 0 else IndexOperation(operator, (left, IndexLiteral(moved)))
        case IndexOperation(IndexOperator.SUBTRACT, (IndexLiteral(value), right)):
            return IndexOperation(IndexOperator.SUBTRACT, (IndexLiteral(value + 1), right))
        case _:
            return IndexOperation(IndexOperator.ADD, (expression, IndexLiteral(1)))


def trip_count(loop: Loop) -> IndexExpression:
    """The number of iterations, where there are any; at most 0 otherwise."""
    if isinstance(loop.lower, IndexLiteral) and isinstance(loop.upper, IndexLiteral):
        return IndexLiteral((loop.upper.value - loop.lower.value) // loop.step + 1)
    distance = IndexOperation(IndexOperator.SUBTRACT, (loop.upper, loop.lower))
    quotient = IndexOperation(IndexOperator.FLOOR_DIVIDE, (distance, IndexLiteral(loop.step)))
    return IndexOperation(IndexOperator.ADD, (quotient, IndexLiteral(1)))


def values_of(loop: Loop) -> range:
    """The values of a loop's iterator where its bounds are numbers; none where they are not."""
    match loop.lower, loop.upper:
        case IndexLiteral(lower), IndexLiteral(upper):
            return range(lower, upper + 1, loop.step)
        case _:
            return range(0)


def _operation(operator: IndexOperator, operands: tuple[Fragment, ...], dialect: Dialect) -> Fragment:
    if operator in _INFIX:
        return reduce(lambda left, right: infix(_INFIX[operator], left, right), operands)
    if operator in _FUNCTIONS:
        name = _function(operator, dialect)
        return reduce(lambda left, right: call(name, left, right), operands)
    if operator is IndexOperator.NEGATE:
        return prefix("-", operands[0])
    return conditional(*operands)


def _function(operator: IndexOperator, dialect: Dialect) -> str:
    if dialect.narrow and dialect.extremes and operator in _EXTREMES:  # whose operands are of one type then
        return dialect.extremes[_EXTREMES.index(operator)]
    return f"{_FUNCTIONS[operator]}_{dialect.index_type}"
