"""Constant bounds of index expressions, to learn from constants alone that a loop runs, and how often."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeAlias, assert_never

from tc.base.frozen import frozen
from tc.language.isl.affine import parameter_name
from tc.language.program.specialization import Sizes
from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral, IndexOperation, IndexOperator, IndexVariable, Loop


@frozen
class Range:
    """All integers from ``least`` to ``most``; an infinity stands where no bound is known."""

    least: int | float
    most: int | float


UNBOUNDED: Final = Range(-math.inf, math.inf)

# What is known about the loop iterators in scope.
Ranges: TypeAlias = Mapping[str, Range]


def size_ranges(sizes: Sizes) -> Ranges:
    """Those of the parameters that stand for symbolic sizes."""
    return {parameter_name(name): Range(1, most) for name, most in sizes}


def range_of(expression: IndexExpression, variables: Ranges) -> Range:
    """Values that the expression may take: not always the narrowest range, but never too narrow."""
    match expression:
        case IndexLiteral(value):
            return Range(value, value)
        case IndexVariable(name):
            return variables.get(name, UNBOUNDED)
        case IndexOperation(operator, operands):
            return _operation(operator, tuple(range_of(operand, variables) for operand in operands))
        case _:
            assert_never(expression)


def ranges_where(condition: IndexExpression, variables: Ranges) -> Ranges:
    """The ranges where a condition holds that compares variables with numbers; the same object for any other."""
    match condition:
        case IndexOperation(IndexOperator.AND, operands):
            for operand in operands:
                variables = ranges_where(operand, variables)
            return variables
        case IndexOperation(IndexOperator.GREATER_EQUAL, (IndexVariable(name), IndexLiteral(value))):
            known = variables.get(name, UNBOUNDED)
            return {**variables, name: Range(max(known.least, value), known.most)}
        case IndexOperation(IndexOperator.LESS_EQUAL, (IndexVariable(name), IndexLiteral(value))):
            known = variables.get(name, UNBOUNDED)
            return {**variables, name: Range(known.least, min(known.most, value))}
        case _:
            return variables


def ranges_within(expression: IndexExpression, variables: Ranges) -> list[Range]:
    """The ranges of everything that is computed for the expression, and of itself, which comes last."""
    if not isinstance(expression, IndexOperation):
        return [range_of(expression, variables)]
    found: list[Range] = []
    operands: list[Range] = []
    for operand in expression.operands:
        found += ranges_within(operand, variables)
        operands.append(found[-1])
    found.append(_operation(expression.operator, tuple(operands)))
    return found


def iterator_range(loop: Loop, variables: Ranges) -> Range:
    """The values of a loop's iterator while its body runs."""
    return Range(range_of(loop.lower, variables).least, range_of(loop.upper, variables).most)


def always_runs(loop: Loop, variables: Ranges) -> bool:
    """Whether the loop has at least one iteration for all values of the variables."""
    return not loop.ranges and range_of(loop.lower, variables).most <= range_of(loop.upper, variables).least


def most_iterations(loop: Loop, variables: Ranges) -> int | None:
    """No run of the loop has more iterations than this; None where no bound is known."""
    values = iterator_range(loop, variables)
    extent = values.most - values.least
    return None if math.isinf(extent) else max(0, int(extent) // loop.step + 1)


def _operation(operator: IndexOperator, operands: tuple[Range, ...]) -> Range:
    match operator, operands:
        case IndexOperator.ADD, (left, right):
            return Range(left.least + right.least, left.most + right.most)
        case IndexOperator.SUBTRACT, (left, right):
            return Range(left.least - right.most, left.most - right.least)
        case IndexOperator.NEGATE, (operand,):
            return Range(-operand.most, -operand.least)
        case IndexOperator.MULTIPLY, (left, right):
            return _product(left, right)
        case IndexOperator.MINIMUM, _:
            return Range(min(o.least for o in operands), min(o.most for o in operands))
        case IndexOperator.MAXIMUM, _:
            return Range(max(o.least for o in operands), max(o.most for o in operands))
        case (
            IndexOperator.FLOOR_DIVIDE | IndexOperator.NONNEGATIVE_DIVIDE | IndexOperator.EXACT_DIVIDE,
            (dividend, Range(least, most)),
        ) if least == most and least > 0:
            return Range(_floor(dividend.least, least), _floor(dividend.most, least))
        case IndexOperator.NONNEGATIVE_REMAINDER, (_, divisor):
            return Range(0, divisor.most - 1)
        case IndexOperator.ZERO_REMAINDER, (_, divisor):
            return Range(1 - divisor.most, divisor.most - 1)
        case IndexOperator.SELECT, (_, then, otherwise):
            return Range(min(then.least, otherwise.least), max(then.most, otherwise.most))
        case _, (left, right):
            return _condition(operator, left, right)
        case _:
            return UNBOUNDED


def _condition(operator: IndexOperator, left: Range, right: Range) -> Range:
    match operator:
        case IndexOperator.LESS_EQUAL:
            return _truth(always=left.most <= right.least, never=left.least > right.most)
        case IndexOperator.LESS:
            return _truth(always=left.most < right.least, never=left.least >= right.most)
        case IndexOperator.GREATER | IndexOperator.GREATER_EQUAL:
            opposite = IndexOperator.LESS if operator is IndexOperator.GREATER else IndexOperator.LESS_EQUAL
            return _condition(opposite, right, left)
        case IndexOperator.EQUAL:
            apart = left.most < right.least or right.most < left.least
            return _truth(always=left == right and left.least == left.most, never=apart)
        case IndexOperator.AND:
            return Range(min(left.least, right.least), min(left.most, right.most))
        case IndexOperator.OR:
            return Range(max(left.least, right.least), max(left.most, right.most))
        case _:
            return UNBOUNDED


def _truth(*, always: bool, never: bool) -> Range:
    """Of a condition, which is 1 where it holds."""
    return Range(1 if always else 0, 0 if never else 1)


def _product(left: Range, right: Range) -> Range:
    # 0 times what has no bound is 0.
    ends = [a * b if a and b else 0 for a in (left.least, left.most) for b in (right.least, right.most)]
    return Range(min(ends), max(ends))


def _floor(dividend: int | float, divisor: int | float) -> int | float:
    return dividend if math.isinf(dividend) else dividend // divisor
