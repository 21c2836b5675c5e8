"""Values of reductions that count only inside ranges that read tensors: ``+=! x(j) where j in R(i):R(i+1)``.

The value is ``j in R(i):R(i+1) ? x(j) : 0``, with the neutral element of the reduction.  Conversions to halves stay
outside, since they say what type the reduction has.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, Cast, Expression, InRange, Literal, Reduction, Select, walk


def neutral_element(reduction: Reduction, type: ScalarType) -> Literal:
    """The value that leaves the other operand of a reduction unchanged; what one starts from."""
    match reduction:
        case Reduction.ADD | Reduction.MULTIPLY:
            value: int | float = 0 if reduction is Reduction.ADD else 1
        case Reduction.MINIMUM:
            value = math.inf if type.is_floating else type.maximum
        case Reduction.MAXIMUM:
            value = -math.inf if type.is_floating else type.minimum
        case _:
            assert_never(reduction)
    if type is ScalarType.BOOL:
        return Literal(bool(value), type)
    return Literal(float(value) if type.is_floating else value, type)


def within(value: Expression, ranges: Sequence[InRange], reduction: Reduction) -> Expression:
    """The value inside all of the ranges, of which there is one at least."""
    if isinstance(value, Cast) and value.type.is_half:
        return replace(value, operand=within(value.operand, ranges, reduction))
    condition: Expression = ranges[0]
    for further in ranges[1:]:
        condition = Binary(BinaryOperator.AND, condition, further, ScalarType.BOOL)
    return Select(condition, value, neutral_element(reduction, value.type), value.type)


def without_ranges(value: Expression, reduction: Reduction | None) -> tuple[Expression, tuple[InRange, ...]]:
    """What ``within`` was told: the value itself, and the ranges; none where it is no such value."""
    if reduction is None:
        return value, ()
    match value:
        case Cast(operand, type) if type.is_half:
            inner, ranges = without_ranges(operand, reduction)
            return replace(value, operand=inner), ranges
        case Select(condition, then, Literal() as otherwise, type) if otherwise == neutral_element(reduction, type):
            found = tuple(_conjuncts(condition))
            ranges = tuple(part for part in found if isinstance(part, InRange))
            return (then, ranges) if len(ranges) == len(found) else (value, ())
        case _:
            return value, ()


def ranges_in(value: Expression) -> tuple[InRange, ...]:
    """The ranges that read tensors in a value, wherever they stand."""
    return tuple(part for part in walk(value) if isinstance(part, InRange))


def where_inside(value: Expression, reduction: Reduction | None, holds: Collection[InRange]) -> Expression:
    """The value of an instance that is known to be inside of some of its ranges."""
    inner, ranges = without_ranges(value, reduction)
    left = tuple(own for own in ranges if own not in holds)
    if reduction is None or len(left) == len(ranges):
        return value
    return within(inner, left, reduction) if left else inner


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Binary) and condition.operator is BinaryOperator.AND:
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition
