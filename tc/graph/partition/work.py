"""The work of a comprehension in a graph: operations, counted from its statements, and bytes of values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.graph.ir.sizes import Shape, number
from tc.graph.ir.values import Value
from tc.language.program.program import (
    Binary,
    Call,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    SizeReference,
    Statement,
    Unary,
    children,
)

# Functions that are one instruction or two; others are polynomials with about eight multiplications and additions.
_PLAIN: Final = frozenset(
    {"abs", "fabs", "min", "max", "fmin", "fmax", "floor", "ceil", "trunc", "round", "sqrt", "fma"}
)
_POLYNOMIAL: Final = 16


def bytes_read(value: Value) -> int:
    """How many bytes the elements of a value take; those that strides of 0 repeat count once."""
    extents = zip(value.shape, value.steps, strict=True)
    return math.prod(number(extent, value.name) for extent, step in extents if step != 0) * value.type.itemsize


def operations(program: Program, shapes: Sequence[Shape]) -> int:
    """How many operations there are for operands of these shapes, all of them numbers.

    A function counts as the operations that it takes.  Ranges count as long as they are at most, and conditions leave
    nothing out, as those of ranges that tensors bound.
    """
    sizes = dict[str, int]()
    for name, shape in zip(program.arguments, shapes, strict=True):
        for declared, extent in zip(program.tensor(name).shape, shape, strict=True):
            if isinstance(declared, SizeReference):
                sizes[declared.name] = number(extent, name)
    return sum(_instances(statement, sizes) * _operations_each(statement) for statement in program.statements)


def _instances(statement: Statement, sizes: Mapping[str, int]) -> int:
    known = dict(sizes)
    count = 1
    for own in statement.iterators:
        begin, end = _greatest(own.begin, known), _greatest(own.end, known)
        count *= _length(own, begin, end)
        known[own.name] = 0 if end is None else max(end - 1, 0)
    return count


def _length(own: IterationVariable, begin: int | None, end: int | None) -> int:
    if begin is None or end is None:
        return 1
    # What depends on other iterators begins at 0 for some of them.
    return max(0, end - begin if isinstance(own.begin, Literal | SizeReference) else end)


def _greatest(expression: Expression, known: Mapping[str, int]) -> int | None:
    """The value for these sizes and the greatest iterators; None where tensors decide."""
    match expression:
        case Literal(value):
            return int(value)
        case SizeReference(name) | IteratorReference(name):
            return known.get(name)
        case Unary(UnaryOperator.NEGATE, operand):
            found = _greatest(operand, known)
            return None if found is None else -found
        case Binary(operator, left, right):
            return _combined(operator, _greatest(left, known), _greatest(right, known))
        case Call("min" | "max" as name, arguments):
            values = [_greatest(argument, known) for argument in arguments]
            numbers = [value for value in values if value is not None]
            return None if len(numbers) < len(values) else min(numbers) if name == "min" else max(numbers)
        case _:
            return None


def _combined(operator: BinaryOperator, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    match operator:
        case BinaryOperator.ADD:
            return left + right
        case BinaryOperator.SUBTRACT:
            return left - right
        case BinaryOperator.MULTIPLY:
            return left * right
        case BinaryOperator.DIVIDE:
            return left // right if right else 0
        case BinaryOperator.REMAINDER:
            return left % right if right else 0
        case _:
            return None


def _operations_each(statement: Statement) -> int:
    return _operations(statement.value) + (statement.reduction is not None)


def _operations(expression: Expression) -> int:
    """Of an expression; subscripts are addresses, which cost nothing of their own."""
    match expression:
        case Read():
            return 0
        case Call(name):
            own = 1 if name in _PLAIN else _POLYNOMIAL
        case Unary() | Binary():
            own = 1
        case _:
            own = 0
    return own + sum(map(_operations, children(expression)))
