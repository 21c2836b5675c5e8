"""What tells the iterations of a loop apart: where conditions and bounds inside of it change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

import numpy as np

from tc.base.frozen import frozen
from tc.polyhedral.gpu.cost.lane_values import Array, Values, value_of
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexExpression,
    IndexOperation,
    IndexOperator,
    Leaf,
    Loop,
    LoopTree,
    variables,
)

_COMPARISONS: Final = (
    IndexOperator.LESS,
    IndexOperator.LESS_EQUAL,
    IndexOperator.GREATER,
    IndexOperator.GREATER_EQUAL,
    IndexOperator.EQUAL,
)
_LOGIC: Final = (IndexOperator.AND, IndexOperator.OR)


@frozen
class Decision:
    """A condition, or a bound of a loop, and the loops between it and the tree that it was found in."""

    expression: IndexExpression
    loops: tuple[Loop, ...]


@frozen
class Changes:
    """The decisions inside of a loop that depend on its iterator, or on those of loops around that it has in common."""

    decisions: tuple[Decision, ...]

    def signature(self, values: Values) -> tuple[bytes, ...]:
        """The same for iterations in which all decisions are the same; ``values``: of the iterators outside."""
        found: list[bytes] = []
        for decision in self.decisions:
            ends = values, values
            for loop in decision.loops:
                ends = _with_end(loop, loop.lower, ends[0]), _with_end(loop, loop.upper, ends[1])
            found.extend(_signature(decision.expression, *ends))
        return tuple(found)


def _with_end(loop: Loop, bound: IndexExpression, values: Values) -> Values:
    return {**values, loop.iterator: np.asarray(value_of(bound, values))}


def changes(tree: LoopTree, iterators: frozenset[str]) -> Changes:
    """The decisions in a tree that depend on these iterators."""
    return Changes(tuple(own for own in _decisions(tree, ()) if _depends(own, iterators)))


def _depends(decision: Decision, iterators: frozenset[str]) -> bool:
    """Whether it mentions one of them, or a loop between does whose bounds depend on one."""
    known = set(iterators)
    for loop in decision.loops:
        if (variables(loop.lower) | variables(loop.upper)) & known:
            known.add(loop.iterator)
    return bool(variables(decision.expression) & known)


def _decisions(tree: LoopTree, loops: tuple[Loop, ...]) -> Iterator[Decision]:
    match tree:
        case Leaf():
            return
        case Block(children):
            for child in children:
                yield from _decisions(child, loops)
        case Allocation(_, body):
            yield from _decisions(body, loops)
        case Guard(condition, then, otherwise):
            yield Decision(condition, loops)
            yield from _decisions(then, loops)
            if otherwise is not None:
                yield from _decisions(otherwise, loops)
        case Loop():
            yield Decision(tree.lower, loops)
            yield Decision(tree.upper, loops)
            yield from _decisions(tree.body, (*loops, tree))
        case _:
            assert_never(tree)


def _signature(expression: IndexExpression, first: Values, last: Values) -> Iterator[bytes]:
    """Of an expression where loops inside are at their first and at their last iterations.

    A comparison changes where the sign of the difference does; how great it is matters where it changes in between.
    """
    match expression:
        case IndexOperation(operator, operands) if operator in _LOGIC:
            for operand in operands:
                yield from _signature(operand, first, last)
        case IndexOperation(operator, (left, right)) if operator in _COMPARISONS:
            ends = [_difference(left, right, values) for values in (first, last)]
            begin, end = np.broadcast_arrays(*ends)
            yield np.where(np.sign(begin) == np.sign(end), np.sign(begin), begin).tobytes()
            yield np.sign(end).tobytes()
        case _:
            yield np.asarray(value_of(expression, first)).tobytes()
            yield np.asarray(value_of(expression, last)).tobytes()


def _difference(left: IndexExpression, right: IndexExpression, values: Values) -> Array:
    found: Array = value_of(left, values).astype(np.int64) - value_of(right, values).astype(np.int64)
    return found
