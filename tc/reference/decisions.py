"""Where values turn into decisions: comparisons, logic, choices and conversions, with every possible outcome."""

from __future__ import annotations

from typing import Final

import numpy as np

from tc.base.types import Kind, ScalarType, computation_type
from tc.grammar.syntax import BinaryOperator
from tc.reference.bounded import (
    Array,
    BoolArray,
    Bounded,
    FloatArray,
    any_ambiguous,
    collapse,
    hull,
    numpy_type,
    rounded,
    roundoff,
    span,
)
from tc.reference.integers import within_type

_COMPARISONS: Final = {
    BinaryOperator.EQUAL: np.equal,
    BinaryOperator.NOT_EQUAL: np.not_equal,
    BinaryOperator.LESS: np.less,
    BinaryOperator.LESS_EQUAL: np.less_equal,
    BinaryOperator.GREATER: np.greater,
    BinaryOperator.GREATER_EQUAL: np.greater_equal,
}

# 64-bit integers lose this much, relatively, when they become float64.
_CONVERSION_LOSS: Final = 2.0**-50


def decide(operator: BinaryOperator, left: Bounded, right: Bounded) -> Bounded:
    """A comparison; where the intervals of its operands meet, either outcome is possible."""
    value = np.asarray(_COMPARISONS[operator](left.value, right.value))
    if left.is_exact and right.is_exact:
        return Bounded(value, ambiguous=any_ambiguous(left, right))
    first, second = left.value.astype(np.float64), right.value.astype(np.float64)
    reach = left.error + right.error
    slack = np.where(reach > 0, _CONVERSION_LOSS * np.abs(first), 0.0)
    open_ = (reach > 0) & ~(np.abs(first - second) > reach + slack) & ~(np.isnan(first) | np.isnan(second))
    open_ = open_ | np.isinf(reach)
    return _undecided(value, open_, left, right)


def possible(condition: Bounded) -> BoolArray:
    """Where a boolean may be true."""
    return condition.value if condition.is_exact else np.asarray(condition.value | (condition.error > 0))


def certain(condition: Bounded) -> BoolArray:
    """Where a boolean must be true."""
    return condition.value if condition.is_exact else np.asarray(condition.value & (condition.error == 0))


def conjunction(left: Bounded, right: Bounded) -> Bounded:
    """``left && right``."""
    open_ = possible(left) & possible(right) & ~(certain(left) & certain(right))
    decided = ~(possible(left) | left.ambiguous) | ~(possible(right) | right.ambiguous)
    return _logic(np.logical_and(left.value, right.value), open_, decided, left, right)


def disjunction(left: Bounded, right: Bounded) -> Bounded:
    """``left || right``."""
    open_ = (possible(left) | possible(right)) & ~(certain(left) | certain(right))
    decided = (certain(left) & ~left.ambiguous) | (certain(right) & ~right.ambiguous)
    return _logic(np.logical_or(left.value, right.value), open_, decided, left, right)


def negation(operand: Bounded) -> Bounded:
    """``!operand``."""
    return Bounded(np.logical_not(operand.value), operand.error, operand.ambiguous)


def select(condition: Bounded, then: Bounded, otherwise: Bounded) -> Bounded:
    """The chosen branch; where the condition is open, the value it would have had and room for the other."""
    ambiguous = any_ambiguous(then, otherwise)
    if ambiguous.ndim:
        ambiguous = np.where(condition.value, then.ambiguous, otherwise.ambiguous)
    if then.is_exact and otherwise.is_exact and condition.is_exact:
        value = np.where(condition.value, then.value, otherwise.value)
        return Bounded(value, ambiguous=any_ambiguous(condition, Bounded(value, ambiguous=ambiguous)))
    chosen = Bounded(
        np.where(condition.value, then.value, otherwise.value),
        np.where(condition.value, then.error, otherwise.error),
        any_ambiguous(condition, Bounded(condition.value, ambiguous=ambiguous)),
    )
    if condition.is_exact:
        return chosen
    rejected = Bounded(
        np.where(condition.value, otherwise.value, then.value),
        np.where(condition.value, otherwise.error, then.error),
    )
    return hull(chosen, rejected, condition.error > 0)


def convert(operand: Bounded, source: ScalarType, target: ScalarType) -> Bounded:
    """A cast; the operand is settled."""
    source = computation_type(source)
    if source is target:
        return operand
    if source.is_floating:
        if target.is_floating:
            return _narrow(operand, source, target)
        return _truth(operand) if target.kind is Kind.BOOLEAN else _saturate(operand, target)
    if target.kind is Kind.BOOLEAN:
        return _truth(operand)
    if target.is_floating:
        return _narrow(Bounded(operand.value.astype(np.float64), operand.error, operand.ambiguous), source, target)
    value = operand.value.astype(numpy_type(target))
    if operand.is_exact:
        return Bounded(value, ambiguous=operand.ambiguous)
    kept = np.where(value.astype(np.float64) == operand.value.astype(np.float64), operand.error, np.inf)
    error = np.where(operand.error > 0, kept, 0.0)
    return Bounded(value, within_type(value, error, target), operand.ambiguous)


def _narrow(operand: Bounded, source: ScalarType, target: ScalarType) -> Bounded:
    """To a floating type: nothing is lost where it holds the value exactly."""
    if source.is_floating and target.itemsize > source.itemsize:
        return operand
    magnitude = np.abs(operand.value) + operand.error
    wide = 2.0**53 if not source.is_floating else np.inf  # larger integers were rounded to float64 on the way
    fits = (rounded(operand.value, target) == operand.value) & (operand.error == 0) & (magnitude <= wide)
    loss = roundoff(target) * magnitude + target.smallest_subnormal
    error = operand.error + np.where(fits | ~np.isfinite(operand.value), 0.0, loss)
    return collapse(Bounded(operand.value, np.asarray(error), operand.ambiguous), target)


def _truth(operand: Bounded) -> Bounded:
    value = np.not_equal(operand.value, 0)
    if operand.is_exact:
        return Bounded(value, ambiguous=operand.ambiguous)
    open_ = (operand.error > 0) & (np.abs(operand.value.astype(np.float64)) <= operand.error)
    return _undecided(value, open_, operand, operand)


def _saturate(operand: Bounded, target: ScalarType) -> Bounded:
    """Floating to integer: truncates, saturates, NaN gives 0."""
    value = _truncated(operand.value, target)
    if operand.is_exact:
        return Bounded(value, ambiguous=operand.ambiguous)
    middle = value.astype(np.float64)
    low = _truncated(operand.value - operand.error, target).astype(np.float64)
    high = _truncated(operand.value + operand.error, target).astype(np.float64)
    error = np.maximum(middle - low, high - middle)
    error = np.where(np.isinf(operand.error), span(target), np.where(np.isnan(operand.value), 0.0, error))
    return Bounded(value, error, np.logical_or(operand.ambiguous, error > 0))


def _truncated(value: FloatArray, target: ScalarType) -> Array:
    type = numpy_type(target)
    whole = np.trunc(np.where(np.isnan(value), 0.0, value))
    # The largest value of a 64-bit type is not a float64; 2.0**63 is, and lies just outside.
    above, below = whole >= float(target.maximum) + (target.itemsize < 8), whole <= float(target.minimum)
    inside = np.where(above | below, 0.0, whole).astype(type)
    return np.where(above, type.type(target.maximum), np.where(below, type.type(target.minimum), inside))


def _logic(value: BoolArray, open_: BoolArray, decided: BoolArray, left: Bounded, right: Bounded) -> Bounded:
    """``decided``: one operand gives the result, whatever became of the other one, which may not be evaluated."""
    ambiguous = any_ambiguous(left, right)
    if ambiguous.any():
        ambiguous = np.logical_and(ambiguous, ~decided)
    if left.is_exact and right.is_exact:
        return Bounded(value, ambiguous=ambiguous)
    return Bounded(value, np.where(open_, 1.0, 0.0), ambiguous)


def _undecided(value: BoolArray, open_: BoolArray, left: Bounded, right: Bounded) -> Bounded:
    if not open_.any():
        return Bounded(value, ambiguous=any_ambiguous(left, right))
    ambiguous = np.logical_or(any_ambiguous(left, right), open_)
    return Bounded(value, np.where(open_, 1.0, 0.0), ambiguous)
