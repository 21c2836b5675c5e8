"""From isl's affine functions and sets back to expressions of a program: the inverse of ``tc.language.isl.affine``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import islpy as isl

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.affine import parameter_name
from tc.language.isl.pieces import basic_sets_of
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    IteratorReference,
    Literal,
    SizeReference,
)


def affine_expression(function: isl.Aff, iterators: Sequence[str], sizes: Sequence[str]) -> Expression | None:
    """The function of points ``[iterators]`` as an expression; None where its values are no whole numbers.

    ``sizes``: what its parameters stand for.
    """
    if not function.get_denominator_val().is_one():
        return None
    total: Expression | None = None
    for factor, part in _terms(function, iterators, sizes):
        scaled = _times(factor, part)
        total = scaled if total is None else _binary(BinaryOperator.ADD, total, scaled)
    constant = int(function.get_constant_val().to_python())
    if total is None:
        return Literal(constant, INDEX_TYPE)
    if constant == 0:
        return total
    operator = BinaryOperator.ADD if constant > 0 else BinaryOperator.SUBTRACT
    return _binary(operator, total, Literal(abs(constant), INDEX_TYPE))


def _terms(function: isl.Aff, iterators: Sequence[str], sizes: Sequence[str]) -> Iterator[tuple[int, Expression]]:
    for position, name in enumerate(iterators):
        factor = int(function.get_coefficient_val(isl.dim_type.in_, position).to_python())
        if factor:
            yield factor, IteratorReference(name)
    for name in sizes:
        position = function.find_dim_by_name(isl.dim_type.param, parameter_name(name))
        factor = 0 if position < 0 else int(function.get_coefficient_val(isl.dim_type.param, position).to_python())
        if factor:
            yield factor, SizeReference(name)
    for position in range(function.dim(isl.dim_type.div)):
        factor = int(function.get_coefficient_val(isl.dim_type.div, position).to_python())
        if factor:
            yield factor, _floor(function.get_div(position), iterators, sizes)


def _floor(quotient: isl.Aff, iterators: Sequence[str], sizes: Sequence[str]) -> Expression:
    """The quotient rounded down, in terms of division and remainder that round to zero."""
    divisor = int(quotient.get_denominator_val().to_python())
    dividend = affine_expression(quotient.scale_val(quotient.get_denominator_val()), iterators, sizes)
    assert dividend is not None, "a quotient times its denominator is whole"
    by = Literal(divisor, INDEX_TYPE)
    remainder = _binary(BinaryOperator.REMAINDER, dividend, by)
    positive = _binary(BinaryOperator.REMAINDER, _binary(BinaryOperator.ADD, remainder, by), by)
    return _binary(BinaryOperator.DIVIDE, _binary(BinaryOperator.SUBTRACT, dividend, positive), by)


def conditions_of(points: isl.Set, iterators: Sequence[str], sizes: Sequence[str]) -> tuple[Expression, ...]:
    """Conditions on the iterators that hold at exactly these points ``[iterators]``."""
    pieces = [tuple(_constraints(piece, iterators, sizes)) for piece in basic_sets_of(points.compute_divs())]
    if len(pieces) == 1 or () in pieces:
        return () if () in pieces else pieces[0]
    alternatives: list[Expression] = [reduce(_both, piece) for piece in pieces]
    return (reduce(_either, alternatives) if alternatives else Literal(value=False, type=ScalarType.BOOL),)


def _constraints(piece: isl.BasicSet, iterators: Sequence[str], sizes: Sequence[str]) -> Iterator[Expression]:
    for constraint in piece.get_constraints():
        left = affine_expression(constraint.get_aff(), iterators, sizes)
        assert left is not None, "constraints have whole coefficients"
        operator = BinaryOperator.EQUAL if constraint.is_equality() else BinaryOperator.GREATER_EQUAL
        yield _logic(operator, left, Literal(0, INDEX_TYPE))


def _both(left: Expression, right: Expression) -> Expression:
    return _logic(BinaryOperator.AND, left, right)


def _either(left: Expression, right: Expression) -> Expression:
    return _logic(BinaryOperator.OR, left, right)


def _logic(operator: BinaryOperator, left: Expression, right: Expression) -> Expression:
    return Binary(operator, left, right, ScalarType.BOOL)


def _binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression:
    return Binary(operator, left, right, INDEX_TYPE)


def _times(factor: int, value: Expression) -> Expression:
    return value if factor == 1 else _binary(BinaryOperator.MULTIPLY, Literal(factor, INDEX_TYPE), value)
