"""Conditions of loops as sets of isl."""

from __future__ import annotations

import itertools

import islpy as isl
import pytest

from tc.language.isl.affine import Frame
from tc.language.isl.session import isl_context
from tc.polyhedral.analysis.fold_index import at_values
from tc.polyhedral.analysis.index_functions import index_condition
from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral, IndexOperation, IndexOperator, IndexVariable

A, B, C = (IndexVariable(name) for name in "abc")
ORDERS = (IndexOperator.LESS, IndexOperator.LESS_EQUAL, IndexOperator.GREATER, IndexOperator.GREATER_EQUAL)
VALUES = range(-2, 3)


def extremes(operator: IndexOperator) -> IndexOperation:
    inner = IndexOperation(IndexOperator.MINIMUM, (B, IndexLiteral(1)))
    return IndexOperation(operator, (C, inner, IndexOperation(IndexOperator.ADD, (B, B))))


@pytest.mark.parametrize("extreme", [IndexOperator.MINIMUM, IndexOperator.MAXIMUM])
@pytest.mark.parametrize("order", [*ORDERS, IndexOperator.EQUAL])
@pytest.mark.parametrize("first", [True, False])
def test_comparisons_hold_where_they_do_in_c(order: IndexOperator, extreme: IndexOperator, first: bool) -> None:
    """Minima and maxima, one inside the other, on either side."""
    operands: tuple[IndexExpression, ...] = (extremes(extreme), A) if first else (A, extremes(extreme))
    condition = IndexOperation(order, operands)
    with isl_context() as context:
        found = index_condition(condition, Frame(context, "loops", ("a", "b", "c")))
        for point in itertools.product(VALUES, repeat=3):
            only = isl.Set.read_from_str(context, f"{{ loops[{', '.join(map(str, point))}] }}")
            holds = at_values(condition, dict(zip("abc", point, strict=True)))
            assert holds == IndexLiteral(int(only.is_subset(found))), point


def test_the_bounds_of_a_loop_are_one_convex_set() -> None:
    """isl's maximum of three functions has pieces, and what follows from them thousands of cases."""
    bounds = tuple(
        IndexOperation(IndexOperator.ADD, (IndexVariable(name), IndexLiteral(n))) for n, name in enumerate("abc")
    )
    lower = IndexOperation(IndexOperator.MAXIMUM, bounds)
    upper = IndexOperation(IndexOperator.MINIMUM, bounds)
    with isl_context() as context:
        frame = Frame(context, "loops", ("a", "b", "c", "d"))
        for operands in ((lower, IndexVariable("d")), (IndexVariable("d"), upper)):
            assert index_condition(IndexOperation(IndexOperator.LESS_EQUAL, operands), frame).n_basic_set() == 1
