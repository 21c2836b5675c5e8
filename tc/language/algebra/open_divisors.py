"""Remainders and quotients by sizes that stay open, as cases that isl understands.

isl has no products of sizes, so ``e % N`` is no function of it.  Where ``e`` lies within a few multiples of ``N``, the
quotient is one of a few numbers, and ``e % N`` is ``e``, ``e - N``, ... : which one, a comparison says.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import islpy as isl

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.fold import fold
from tc.language.algebra.rewriting import map_statement
from tc.language.isl.affine import Frame, affine_function, frame_of
from tc.language.isl.session import isl_context
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    Literal,
    Select,
    SizeReference,
    Statement,
    rebuild,
    walk,
)
from tc.language.program.specialization import Sizes

# Quotients beyond these, up or down, are left alone: every one is a case.
MOST_QUOTIENT: Final = 4


def without_open_divisors(statement: Statement, sizes: Sizes) -> Statement:
    """The statement with cases for remainders and quotients by symbolic sizes, wherever isl bounds the quotient.

    It is bounded by the ranges of the iterators, whatever conditions say.
    """
    expressions = (*statement.subscripts, *statement.conditions, statement.value, *statement.required)
    bounds = (bound for iterator in statement.iterators for bound in (iterator.begin, iterator.end))
    if not any(map(_has_open_divisor, (*expressions, *bounds))):
        return statement
    with isl_context() as context:
        frame = frame_of(statement, context, sizes=sizes)
        domain = frame.possible()
        found = statement
        for position, iterator in enumerate(statement.iterators):
            begin, end = (_decided(bound, frame, domain) for bound in (iterator.begin, iterator.end))
            iterators = list(found.iterators)
            iterators[position] = replace(iterator, begin=begin, end=end)
            found = replace(found, iterators=tuple(iterators))
            low, high, variable = (*(affine_function(e, frame) for e in (begin, end)), frame.require(iterator.name))
            if low is None or high is None:
                return found
            domain = domain.intersect(low.le_set(variable)).intersect(variable.lt_set(high))
        mapped = map_statement(found, partial(_decided, frame=frame, domain=domain))
        return replace(mapped, iterators=found.iterators)


def _has_open_divisor(expression: Expression) -> bool:
    return any(map(_divides_by_size, walk(expression)))


def _divides_by_size(expression: Expression) -> bool:
    match expression:
        case Binary(BinaryOperator.DIVIDE | BinaryOperator.REMAINDER, _, right, type) if type is INDEX_TYPE:
            return any(isinstance(leaf, SizeReference) for leaf in walk(right))
        case _:
            return False


def _decided(expression: Expression, frame: Frame, domain: isl.Set) -> Expression:
    """The expression with cases, where a domain bounds its quotients by sizes."""
    if not _has_open_divisor(expression):
        return expression
    found = rebuild(expression, lambda child: _decided(child, frame, domain))
    return (_cases(found, frame, domain) or found) if _divides_by_size(found) else found


def _cases(expression: Expression, frame: Frame, domain: isl.Set) -> Expression | None:
    """A quotient or a remainder as cases; None where the quotient is not bounded, or the divisor may be 0."""
    assert isinstance(expression, Binary)
    dividend, divisor = (affine_function(e, frame) for e in (expression.left, expression.right))
    if dividend is None or divisor is None or not domain.is_subset(divisor.pos_set()):
        return None
    reach = range(MOST_QUOTIENT + 1)

    def beyond(quotient: int) -> isl.PwAff:
        return divisor.mul(frame.constant(quotient + 1))

    last = next((q for q in reach if domain.is_subset(dividend.lt_set(beyond(q)))), None)
    first = next((-q for q in reach if domain.is_subset(dividend.neg().lt_set(beyond(q)))), None)
    if last is None or first is None:
        return None
    found = _case(expression, first)
    for quotient in range(first + 1, last + 1):
        # Quotients truncate: that of what lies between -N and N is 0.
        limit = _multiple(expression.right, quotient if quotient > 0 else quotient - 1)
        operator = BinaryOperator.GREATER_EQUAL if quotient > 0 else BinaryOperator.GREATER
        is_further = Binary(operator, expression.left, limit, ScalarType.BOOL)
        found = Select(is_further, _case(expression, quotient), found, INDEX_TYPE)
    return found


def _case(expression: Binary, quotient: int) -> Expression:
    """The value where the quotient is a number; the iterators of the dividend stay, for they say what is written."""
    if expression.operator is BinaryOperator.REMAINDER:
        return fold(Binary(BinaryOperator.SUBTRACT, expression.left, _multiple(expression.right, quotient), INDEX_TYPE))
    nothing = Binary(BinaryOperator.MULTIPLY, expression.left, Literal(0, INDEX_TYPE), INDEX_TYPE)
    return fold(Binary(BinaryOperator.ADD, nothing, Literal(quotient, INDEX_TYPE), INDEX_TYPE))


def _multiple(divisor: Expression, quotient: int) -> Expression:
    if quotient == 0:
        return Literal(0, INDEX_TYPE)
    return fold(Binary(BinaryOperator.MULTIPLY, Literal(quotient, INDEX_TYPE), divisor, INDEX_TYPE))
