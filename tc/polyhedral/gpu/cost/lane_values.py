"""Values of index expressions and subscripts for all threads of a block, and for all copies of unrolled loops.

The last axis of an array is that of the threads, in the order in which warps take them; before it stands one axis for
each unrolled loop around, the innermost one first.  An axis has length 1 where a value does not depend on its loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.isl.affine import parameter_name
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
)
from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral, IndexOperation, IndexOperator, IndexVariable

Array: TypeAlias = npt.NDArray[Any]
Values: TypeAlias = Mapping[str, Array]

_INDEX: Final[Mapping[IndexOperator, Callable[..., Any]]] = {
    IndexOperator.ADD: np.add,
    IndexOperator.SUBTRACT: np.subtract,
    IndexOperator.MULTIPLY: np.multiply,
    IndexOperator.NEGATE: np.negative,
    IndexOperator.MINIMUM: np.minimum,
    IndexOperator.MAXIMUM: np.maximum,
    IndexOperator.EXACT_DIVIDE: np.floor_divide,
    IndexOperator.FLOOR_DIVIDE: np.floor_divide,
    IndexOperator.NONNEGATIVE_DIVIDE: np.floor_divide,
    IndexOperator.NONNEGATIVE_REMAINDER: np.remainder,
    IndexOperator.ZERO_REMAINDER: np.remainder,
    IndexOperator.AND: np.logical_and,
    IndexOperator.OR: np.logical_or,
    IndexOperator.SELECT: np.where,
    IndexOperator.EQUAL: np.equal,
    IndexOperator.LESS: np.less,
    IndexOperator.LESS_EQUAL: np.less_equal,
    IndexOperator.GREATER: np.greater,
    IndexOperator.GREATER_EQUAL: np.greater_equal,
}
_BINARY: Final[Mapping[BinaryOperator, Callable[..., Any]]] = {
    BinaryOperator.ADD: np.add,
    BinaryOperator.SUBTRACT: np.subtract,
    BinaryOperator.MULTIPLY: np.multiply,
    BinaryOperator.EQUAL: np.equal,
    BinaryOperator.NOT_EQUAL: np.not_equal,
    BinaryOperator.LESS: np.less,
    BinaryOperator.LESS_EQUAL: np.less_equal,
    BinaryOperator.GREATER: np.greater,
    BinaryOperator.GREATER_EQUAL: np.greater_equal,
    BinaryOperator.AND: np.logical_and,
    BinaryOperator.OR: np.logical_or,
}
_TWO: Final = 2


def value_of(expression: IndexExpression, values: Values) -> Array:
    """The value of an index expression where variables have these; KeyError for one that has none."""
    match expression:
        case IndexLiteral(value):
            return np.asarray(value)
        case IndexVariable(name):
            return values[name]
        case IndexOperation(operator, operands):
            found = [value_of(operand, values) for operand in operands]
            if operator is not IndexOperator.SELECT and len(found) > _TWO:
                return reduce(_INDEX[operator], found)
            result: Array = _INDEX[operator](*found)
            return result
        case _:
            assert_never(expression)


def subscript_value(expression: Expression, values: Values, gathered: Callable[[Read], Array]) -> Array:
    """A subscript where iterators have these values; ``gathered``: what a tensor of indices may hold.

    What only scalar arguments tell is taken for 0.
    """
    match expression:
        case Literal(value, _):
            return np.asarray(int(value))
        case IteratorReference(name):
            return values[name]
        case SizeReference(name):
            return values[parameter_name(name)]
        case ScalarReference():
            return np.asarray(0)
        case Read():
            return gathered(expression)
        case Cast(operand, _):
            return subscript_value(operand, values, gathered)
        case Unary(operator, operand, _):
            own = subscript_value(operand, values, gathered)
            return np.negative(own) if operator is UnaryOperator.NEGATE else np.logical_not(own)
        case Binary(operator, left, right, _):
            return _binary(operator, *(subscript_value(part, values, gathered) for part in (left, right)))
        case Select(condition, then, otherwise, _):
            parts = (subscript_value(part, values, gathered) for part in (condition, then, otherwise))
            chosen: Array = np.where(*parts)
            return chosen
        case Call(function, arguments, _):
            return _called(function, [subscript_value(argument, values, gathered) for argument in arguments])
        case InRange():
            return np.asarray(1)
        case _:
            assert_never(expression)


def _called(function: str, arguments: Sequence[Array]) -> Array:
    match function:
        case "min":
            return reduce(np.minimum, arguments)
        case "max":
            return reduce(np.maximum, arguments)
        case "abs":
            return np.abs(arguments[0])
        case _:
            return np.zeros_like(arguments[0])


def _binary(operator: BinaryOperator, left: Array, right: Array) -> Array:
    """Quotients round towards zero, and are 0 where nothing divides."""
    if operator in (BinaryOperator.DIVIDE, BinaryOperator.REMAINDER):
        divisor = np.where(right == 0, 1, right)
        quotient: Array = np.sign(left) * np.sign(divisor) * (np.abs(left) // np.abs(divisor))
        return quotient if operator is BinaryOperator.DIVIDE else left - quotient * divisor
    result: Array = _BINARY[operator](left, right)
    return result
