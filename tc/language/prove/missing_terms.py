"""For which sizes every element of a reduction has a term, which the index of a greatest value needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import islpy as isl

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.fold import fold, fold_constants
from tc.language.isl.affine import Frame, affine_function, frame_of, iteration_domain
from tc.language.isl.pieces import basic_sets_of
from tc.language.isl.session import is_out_of_operations, isl_context
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Cast,
    Expression,
    IterationVariable,
    Literal,
    ScalarReference,
    SizeReference,
    Statement,
    iterators_in,
    walk,
)
from tc.language.program.written_elements import written_iterators
from tc.language.prove.written import initialization


def sizes_with_terms(statement: Statement) -> Expression | None:
    """A condition on sizes and scalars: every element that the statement initializes has a term.

    None where neither isl nor the ranges say so.
    """
    reduced = [i for i in statement.iterators if i not in written_iterators(statement)]
    bounds = [bound for iterator in reduced for bound in (iterator.begin, iterator.end)]
    names = {iterator.name for iterator in reduced}
    if not iterators_in(bounds) and not any(names & iterators_in((c,)) for c in statement.conditions):
        return _where_ranges_have_points(reduced, written_iterators(statement))

    def without_terms(frame: Frame) -> isl.Set | None:
        domain = iteration_domain(statement, frame)
        started = initialization(statement)
        elements = iteration_domain(started, Frame(frame.context, statement.name, _names(started), frame.parameters))
        if domain is None or elements is None:
            return None
        for position in reversed(range(len(statement.iterators))):
            if statement.iterators[position].name in names:
                domain = domain.project_out(isl.dim_type.set, position, 1)
        return elements.subtract(domain.set_tuple_name(statement.name)).params()

    return _complement(without_terms, statement)


def sizes_with_indices_below(statement: Statement, index: Expression, limit: int) -> Expression | None:
    """A condition on sizes and scalars: the index is at most the limit in all instances; None where nothing says so."""
    # Its own iterators and those of their ranges: that others have no points makes the condition no simpler.
    names = set(iterators_in((index,)))
    for iterator in reversed(statement.iterators):
        if iterator.name in names:
            names |= iterators_in((iterator.begin, iterator.end))
    ranges = replace(statement, iterators=tuple(i for i in statement.iterators if i.name in names), conditions=())

    def above(frame: Frame) -> isl.Set | None:
        domain, function = iteration_domain(ranges, frame), affine_function(index, frame)
        if domain is None or function is None:
            return None
        return domain.intersect(function.gt_set(frame.constant(limit))).params()

    return _complement(above, ranges)


def _names(statement: Statement) -> tuple[str, ...]:
    return tuple(iterator.name for iterator in statement.iterators)


def _where_ranges_have_points(reduced: Sequence[IterationVariable], written: Sequence[IterationVariable]) -> Expression:
    condition: Expression = Literal(True, ScalarType.BOOL)
    for iterator in reduced:
        condition = _logic(BinaryOperator.AND, condition, _is_less(iterator.begin, iterator.end))
    for iterator in written:
        if not iterators_in((iterator.begin, iterator.end)):
            is_empty = Binary(BinaryOperator.LESS_EQUAL, iterator.end, iterator.begin, ScalarType.BOOL)
            condition = _logic(BinaryOperator.OR, condition, fold_constants(is_empty))
    return condition


def _is_less(begin: Expression, end: Expression) -> Expression:
    return fold_constants(Binary(BinaryOperator.LESS, begin, end, ScalarType.BOOL))


def _complement(bad: Callable[[Frame], isl.Set | None], statement: Statement) -> Expression | None:
    """Where sizes and scalars are not among the bad ones."""
    leaves = _leaves(statement)
    try:
        with isl_context() as context:
            frame = frame_of(statement, context, [leaf.name for leaf in leaves])
            possible = isl.Set.universe(frame.space()).params()
            for position, leaf in enumerate(leaves):
                if isinstance(leaf, SizeReference):
                    possible = possible.lower_bound_val(isl.dim_type.param, position, isl.Val.zero(context))
            found = bad(frame)
            if found is None:
                return None
            return _condition(possible.subtract(found).coalesce().gist(possible), leaves)
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return None


def _leaves(statement: Statement) -> list[SizeReference | ScalarReference]:
    """The sizes and integer scalars of ranges, conditions and subscripts."""
    bounds = (bound for iterator in statement.iterators for bound in (iterator.begin, iterator.end))
    leaves = (e for x in (*bounds, *statement.conditions, statement.value) for e in walk(x))
    return list(
        dict.fromkeys(e for e in leaves if isinstance(e, SizeReference | ScalarReference) and e.type.is_integer)
    )


def _condition(values: isl.Set, leaves: Sequence[SizeReference | ScalarReference]) -> Expression | None:
    """The values as a condition; None where that needs quotients."""
    condition: Expression = Literal(False, ScalarType.BOOL)
    for part in basic_sets_of(values):
        inside: Expression = Literal(True, ScalarType.BOOL)
        for constraint in part.get_constraints():
            function = constraint.get_aff()
            if function.dim(isl.dim_type.div):
                return None
            operator = BinaryOperator.EQUAL if constraint.is_equality() else BinaryOperator.GREATER_EQUAL
            inside = _logic(BinaryOperator.AND, inside, _compared(operator, function, leaves))
        condition = _logic(BinaryOperator.OR, condition, inside)
    return condition


def _compared(
    operator: BinaryOperator, function: isl.Aff, leaves: Sequence[SizeReference | ScalarReference]
) -> Expression:
    """A function of sizes beside 0, with what is subtracted on the other side."""
    constant = function.get_constant_val().to_python()
    sides: dict[bool, Expression] = {True: Literal(max(constant, 0), INDEX_TYPE)}
    sides[False] = Literal(max(-constant, 0), INDEX_TYPE)
    for position, leaf in enumerate(leaves):
        factor = function.get_coefficient_val(isl.dim_type.param, position).to_python()
        if not factor:
            continue
        operand = leaf if leaf.type is INDEX_TYPE else Cast(leaf, INDEX_TYPE)
        multiple = _index(BinaryOperator.MULTIPLY, Literal(abs(factor), INDEX_TYPE), operand)
        sides[factor > 0] = _index(BinaryOperator.ADD, sides[factor > 0], multiple)
    if operator is BinaryOperator.GREATER_EQUAL and isinstance(sides[True], Literal):
        return Binary(BinaryOperator.LESS_EQUAL, sides[False], sides[True], ScalarType.BOOL)
    return Binary(operator, sides[True], sides[False], ScalarType.BOOL)


def _index(operator: BinaryOperator, left: Expression, right: Expression) -> Expression:
    return fold(Binary(operator, left, right, INDEX_TYPE))


def _logic(operator: BinaryOperator, left: Expression, right: Expression) -> Expression:
    """``&&`` or ``||``, without what is true or false by itself."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Literal):
            return other if bool(one.value) is (operator is BinaryOperator.AND) else one
    return Binary(operator, left, right, ScalarType.BOOL)
