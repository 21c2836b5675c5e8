"""Guards that the ranges of iterators settle, and only those, are left out."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import replace

import pytest

from tc.polyhedral.analysis.ranges import Range, range_of
from tc.polyhedral.generate.constant_guards import without_constant_guards
from tc.polyhedral.ir.loop_text import loop_text
from tc.polyhedral.ir.loops import (
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
)

FIRST, SECOND = IndexVariable("i"), IndexVariable("j")
ONE, OTHER = Instance("S0", (FIRST,)), Instance("S1", (FIRST,))
CONDITIONS: dict[IndexOperator, Callable[[int, int], bool]] = {
    IndexOperator.LESS: operator.lt,
    IndexOperator.LESS_EQUAL: operator.le,
    IndexOperator.GREATER: operator.gt,
    IndexOperator.GREATER_EQUAL: operator.ge,
    IndexOperator.EQUAL: operator.eq,
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_settled_if_it_is_the_same_for_all_values(condition: IndexOperator) -> None:
    ranges = [Range(least, most) for least in range(-1, 3) for most in range(least, 3)]
    for left, right in itertools.product(ranges, ranges):
        values = {
            CONDITIONS[condition](a, b)
            for a in range(int(left.least), int(left.most) + 1)
            for b in range(int(right.least), int(right.most) + 1)
        }
        assert range_of(IndexOperation(condition, (FIRST, SECOND)), {"i": left, "j": right}) == Range(
            min(values), max(values)
        )


def guarded(condition: IndexExpression, otherwise: LoopTree | None = None) -> Loop:
    """Eight iterations, in each of which a guard stands."""
    return Loop("i", IndexLiteral(0), IndexLiteral(7), 1, LoopKind.THREAD, Guard(condition, ONE, otherwise))


def compared(condition: IndexOperator, value: int) -> IndexExpression:
    return IndexOperation(condition, (FIRST, IndexLiteral(value)))


@pytest.mark.parametrize(
    ("condition", "otherwise", "expected"),
    [
        (compared(IndexOperator.LESS_EQUAL, 7), None, ONE),
        (compared(IndexOperator.LESS_EQUAL, 7), OTHER, ONE),
        (compared(IndexOperator.GREATER, 7), None, Block(())),
        (compared(IndexOperator.GREATER, 7), OTHER, OTHER),
    ],
)
def test_a_settled_guard_leaves_one_branch(
    condition: IndexExpression, otherwise: LoopTree | None, expected: LoopTree
) -> None:
    assert without_constant_guards(guarded(condition, otherwise), {}) == replace(guarded(condition), body=expected)


def test_a_guard_of_some_iterations_stays() -> None:
    loop = guarded(compared(IndexOperator.LESS_EQUAL, 6), OTHER)
    assert without_constant_guards(loop, {}) == loop


def test_three_conditions_that_are_left_are_printed() -> None:
    """An operation has two operands, wherever there are more conditions."""
    conditions = [compared(IndexOperator.LESS_EQUAL, value) for value in (9, 5, 3, 4)]
    both = IndexOperation(IndexOperator.AND, (conditions[0], conditions[1]))
    every = IndexOperation(IndexOperator.AND, (IndexOperation(IndexOperator.AND, (both, conditions[2])), conditions[3]))
    left = without_constant_guards(guarded(every), {})
    assert "if ((i <= 5) && (i <= 3)) && (i <= 4)" in loop_text(left)
