"""Index expressions of loops as functions and sets of isl, and where C computes what they mean."""

from __future__ import annotations

import functools
from typing import Final, assert_never

import islpy as isl

from tc.language.isl.affine import Frame
from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral, IndexOperation, IndexOperator, IndexVariable


def index_function(expression: IndexExpression, frame: Frame) -> isl.PwAff:
    """An index expression as a function of the loop iterators; AssertionError if it is not quasi-affine."""
    match expression:
        case IndexLiteral(value):
            return frame.constant(value)
        case IndexVariable(name):
            variable = frame.variable(name)
            if variable is None:
                raise AssertionError(f"the loops use {name!r} outside of its loop")
            return variable
        case IndexOperation(IndexOperator.SELECT, (condition, then, otherwise)):
            holds = index_condition(condition, frame)
            first, second = index_function(then, frame), index_function(otherwise, frame)
            return first.intersect_domain(holds).union_add(second.intersect_domain(holds.complement()))
        case IndexOperation(operator, operands):
            return _operation(operator, [index_function(operand, frame) for operand in operands])
        case _:
            assert_never(expression)


def _operation(operator: IndexOperator, operands: list[isl.PwAff]) -> isl.PwAff:
    first = operands[0]
    match operator:
        case IndexOperator.NEGATE:
            return first.neg()
        case IndexOperator.ADD:
            return functools.reduce(isl.PwAff.add, operands)
        case IndexOperator.SUBTRACT:
            return first.sub(operands[1])
        case IndexOperator.MULTIPLY:
            return first.mul(operands[1])
        case IndexOperator.MINIMUM:
            return functools.reduce(isl.PwAff.min, operands)
        case IndexOperator.MAXIMUM:
            return functools.reduce(isl.PwAff.max, operands)
        case IndexOperator.EXACT_DIVIDE | IndexOperator.FLOOR_DIVIDE | IndexOperator.NONNEGATIVE_DIVIDE:
            return first.div(operands[1]).floor()
        case IndexOperator.NONNEGATIVE_REMAINDER | IndexOperator.ZERO_REMAINDER:
            return first.sub(operands[1].mul(first.div(operands[1]).floor()))
        case _:
            raise AssertionError(f"{operator} is not a number")


def index_condition(expression: IndexExpression, frame: Frame) -> isl.Set:
    """Where a truth-valued index expression holds."""
    match expression:
        case IndexOperation(IndexOperator.AND, operands):
            return functools.reduce(isl.Set.intersect, (index_condition(o, frame) for o in operands))
        case IndexOperation(IndexOperator.OR, operands):
            return functools.reduce(isl.Set.union, (index_condition(o, frame) for o in operands))
        case IndexOperation(IndexOperator.EQUAL, (left, right)):
            return index_function(left, frame).eq_set(index_function(right, frame))
        case IndexOperation(IndexOperator.LESS, (left, right)) | IndexOperation(IndexOperator.GREATER, (right, left)):
            return _ordered(left, right, frame, strict=True)
        case IndexOperation(IndexOperator.LESS_EQUAL, (left, right)) | IndexOperation(
            IndexOperator.GREATER_EQUAL, (right, left)
        ):
            return _ordered(left, right, frame, strict=False)
        case _:
            raise AssertionError(f"not a condition: {expression}")


def _ordered(left: IndexExpression, right: IndexExpression, frame: Frame, *, strict: bool) -> isl.Set:
    """Where the left one is less than the right one, or, unless ``strict``, equal.

    A maximum is less if all of its operands are: one convex set, where isl's maximum is a function of many pieces.
    """
    extremes = (IndexOperator.MAXIMUM, IndexOperator.MINIMUM)
    if isinstance(left, IndexOperation) and left.operator in extremes:
        found = [_ordered(operand, right, frame, strict=strict) for operand in left.operands]
        every = left.operator is IndexOperator.MAXIMUM
    elif isinstance(right, IndexOperation) and right.operator in extremes:
        found = [_ordered(left, operand, frame, strict=strict) for operand in right.operands]
        every = right.operator is IndexOperator.MINIMUM
    else:
        first, second = index_function(left, frame), index_function(right, frame)
        return first.lt_set(second) if strict else first.le_set(second)
    return functools.reduce(isl.Set.intersect if every else isl.Set.union, found)


def fit_for_c(expression: IndexExpression, frame: Frame) -> isl.Set:
    """Where the expression means in C what it means here: divisions are exact or of nonnegative numbers as promised.

    Operands that C does not evaluate, behind ``&&``, ``||`` and ``?:``, promise nothing.
    """
    if not _promises(expression):
        return frame.universe()
    match expression:
        case IndexLiteral() | IndexVariable():
            return frame.universe()
        case IndexOperation(IndexOperator.AND | IndexOperator.OR as operator, operands):
            fit = fit_for_c(operands[-1], frame)
            for operand in reversed(operands[:-1]):
                holds = index_condition(operand, frame)
                skipped = holds if operator is IndexOperator.OR else holds.complement()
                fit = fit_for_c(operand, frame).intersect(skipped.union(fit))
            return fit
        case IndexOperation(IndexOperator.SELECT, (condition, then, otherwise)):
            holds = index_condition(condition, frame)
            chosen = holds.intersect(fit_for_c(then, frame)).union(
                holds.complement().intersect(fit_for_c(otherwise, frame))
            )
            return fit_for_c(condition, frame).intersect(chosen)
        case IndexOperation(operator, operands):
            fit = functools.reduce(isl.Set.intersect, (fit_for_c(operand, frame) for operand in operands))
            return fit.intersect(_promise(operator, operands, frame))
        case _:
            assert_never(expression)


_PROMISES: Final = (
    IndexOperator.NONNEGATIVE_DIVIDE,
    IndexOperator.NONNEGATIVE_REMAINDER,
    IndexOperator.EXACT_DIVIDE,
)


def _promises(expression: IndexExpression) -> bool:
    """Whether there is any such division in it."""
    match expression:
        case IndexOperation(operator, operands):
            return operator in _PROMISES or any(map(_promises, operands))
        case _:
            return False


def _promise(operator: IndexOperator, operands: tuple[IndexExpression, ...], frame: Frame) -> isl.Set:
    match operator:
        case IndexOperator.NONNEGATIVE_DIVIDE | IndexOperator.NONNEGATIVE_REMAINDER:
            return index_function(operands[0], frame).ge_set(frame.constant(0))
        case IndexOperator.EXACT_DIVIDE:
            quotient = index_function(IndexOperation(IndexOperator.FLOOR_DIVIDE, operands), frame)
            return quotient.mul(index_function(operands[1], frame)).eq_set(index_function(operands[0], frame))
        case _:
            return frame.universe()
