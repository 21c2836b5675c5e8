"""Intervals that hold all values of an index over a box, without a look at its points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import (
    Binary,
    Call,
    Cast,
    Expression,
    Literal,
    Read,
    Select,
    Unary,
)
from tc.reference.access import Box, Window, bounds, linear_form

# The least and the greatest value, or bounds of them.
Interval: TypeAlias = tuple[int, int]


def index_interval(expression: Expression, positions: Mapping[str, int], box: Box) -> Interval | None:
    """Of an integer expression over a box that is not empty; None where it reads a tensor, or there is no rule."""
    form = linear_form(expression, positions)
    found = bounds(form, box) if form is not None else _interval(expression, positions, box)
    type = expression.type
    # Integers wrap beyond their type.
    return found if found is not None and type.minimum <= found[0] and found[1] <= type.maximum else None


def read_window(read: Read, positions: Mapping[str, int], box: Box, shape: tuple[int, ...]) -> Window:
    """A window of a tensor that holds the elements which a read has over a box that is not empty."""
    intervals = (index_interval(subscript, positions, box) for subscript in read.subscripts)
    return Window(tuple(_clipped(i, extent) for i, extent in zip(intervals, shape, strict=True)), shape)


def _clipped(interval: Interval | None, extent: int) -> range:
    """The elements of a dimension in an interval; all, if it is unknown."""
    if interval is None:
        return range(extent)
    start = min(max(interval[0], 0), extent)
    return range(start, max(start, min(interval[1] + 1, extent)))


def _interval(expression: Expression, positions: Mapping[str, int], box: Box) -> Interval | None:
    match expression:
        case Cast(operand) if operand.type.is_integer:
            return index_interval(operand, positions, box)
        case Unary(UnaryOperator.NEGATE, operand):
            inner = index_interval(operand, positions, box)
            return None if inner is None else (-inner[1], -inner[0])
        case Select(_, first, second) | Call("min" | "max", (first, second)) | Binary(_, first, second):
            left, right = index_interval(first, positions, box), index_interval(second, positions, box)
            return None if left is None or right is None else _combined(expression, left, right)
        case Literal(value):
            return int(value), int(value)
        case _:
            return None


def _combined(expression: Expression, left: Interval, right: Interval) -> Interval | None:
    match expression:
        case Select():
            return min(left[0], right[0]), max(left[1], right[1])
        case Call("min"):
            return min(left[0], right[0]), min(left[1], right[1])
        case Call():
            return max(left[0], right[0]), max(left[1], right[1])
        case Binary(BinaryOperator.ADD):
            return left[0] + right[0], left[1] + right[1]
        case Binary(BinaryOperator.SUBTRACT):
            return left[0] - right[1], left[1] - right[0]
        case Binary(BinaryOperator.MULTIPLY):
            corners = [one * other for one in left for other in right]
            return min(corners), max(corners)
        case Binary(BinaryOperator.DIVIDE) if right[0] == right[1]:
            ends = [_truncated(one, right[0]) for one in left]
            return min(ends), max(ends)
        case Binary(BinaryOperator.REMAINDER) if right[0] == right[1]:
            return _remainder(left, abs(right[0]))
        case _:
            return None


def _truncated(dividend: int, divisor: int) -> int:
    """The quotient, rounded towards 0; by zero it is 0."""
    if divisor == 0:
        return 0
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _remainder(dividend: Interval, divisor: int) -> Interval:
    """Of a truncated division, whose remainder has the sign of the dividend; by zero it gives 0."""
    least, greatest = dividend
    if divisor == 0:
        return 0, 0
    if _truncated(least, divisor) == _truncated(greatest, divisor) and (least >= 0 or greatest <= 0):
        quotient = _truncated(least, divisor)
        return least - quotient * divisor, greatest - quotient * divisor
    return max(min(least, 0), 1 - divisor), min(max(greatest, 0), divisor - 1)
