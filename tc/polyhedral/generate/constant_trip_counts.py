"""Constant trip counts for loops over private arrays, so that these loops can be unrolled.

A private array lies in registers only if its subscripts are constants once the loops are unrolled.  A loop whose bounds
depend on the thread or block gets the least and the greatest bound of all of them, and guards around its body exclude
the added iterations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.polyhedral.analysis.ranges import Ranges, iterator_range, range_of
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import (
    MOST_UNROLLED,
    Allocation,
    Barrier,
    Block,
    Buffer,
    Copy,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    Scheduled,
    variables,
)
from tc.polyhedral.ir.scop import Scop

# Copies of a thread that are written out.
_MOST_COPIES: Final = 16
_CHANGED: Final = {
    LoopKind.SEQUENTIAL: LoopKind.UNROLLED,
    LoopKind.UNROLLED: LoopKind.UNROLLED,
    LoopKind.REDUCTION: LoopKind.REDUCTION,
}


def constant_trip_counts(root: LoopTree, scop: Scop) -> LoopTree:
    """The tree with constant bounds for loops whose iterators are in subscripts of private arrays."""
    return _fixed(root, scop, {})


def _fixed(tree: LoopTree, scop: Scop, ranges: Ranges) -> LoopTree:
    match tree:
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(_fixed(child, scop, ranges) for child in children))
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else _fixed(otherwise, scop, ranges)
            return Guard(condition, _fixed(then, scop, ranges), other)
        case Allocation():
            return replace(tree, body=_fixed(tree.body, scop, ranges))
        case Loop():
            inner = {**ranges, tree.iterator: iterator_range(tree, ranges)}
            return _counted(replace(tree, body=_fixed(tree.body, scop, inner)), scop, ranges)
        case _:
            assert_never(tree)


def _counted(loop: Loop, scop: Scop, ranges: Ranges) -> Loop:
    if loop.kind not in _CHANGED or loop.step != 1:
        return loop
    least, most = range_of(loop.lower, ranges).least, range_of(loop.upper, ranges).most
    if math.isinf(least) or math.isinf(most) or most - least >= MOST_UNROLLED:
        return loop
    if not (_chooses(loop, scop) or (most - least < _MOST_COPIES and _only_copies(loop, scop))):
        return loop
    return replace(between(loop, int(least), int(most)), kind=_CHANGED[loop.kind])


def between(loop: Loop, least: int, most: int) -> Loop:
    """The loop from ``least`` to ``most``, whose body is guarded by the bounds that it had."""
    first, last, body = IndexLiteral(least), IndexLiteral(most), loop.body
    iterator = IndexVariable(loop.iterator)
    if first != loop.lower:
        lower = _bounding(loop.lower, IndexOperator.MAXIMUM, first)
        body = Guard(IndexOperation(IndexOperator.GREATER_EQUAL, (iterator, lower)), body, None)
    if last != loop.upper:
        upper = _bounding(loop.upper, IndexOperator.MINIMUM, last)
        body = Guard(IndexOperation(IndexOperator.LESS_EQUAL, (iterator, upper)), body, None)
    return replace(loop, lower=first, upper=last, body=body)


def _bounding(bound: IndexExpression, extreme: IndexOperator, limit: IndexLiteral) -> IndexExpression:
    """The bound, without what all iterations keep to that stay within a limit."""
    match bound:
        case IndexOperation(operator, operands) if operator is extreme and limit in operands:
            left = tuple(operand for operand in operands if operand != limit)
            return left[0] if len(left) == 1 else replace(bound, operands=left)
        case _:
            return bound


def _only_copies(loop: Loop, scop: Scop) -> bool:
    """Whether a thread copies so many parts of a tile to shared memory: what tiles have in common is computed once."""
    shared = {promotion.loads for promotion in scop.promotions if promotion.buffer.shared}
    body = loop.body.body if isinstance(loop.body, Loop) and loop.body.kind is LoopKind.VECTOR else loop.body
    return isinstance(body, Copy) and body.statement in shared


def _chooses(loop: Loop, scop: Scop) -> bool:
    """Whether the iterator is in a subscript of a private array, and the body has no barrier."""
    chosen = False
    for instance, _ in loop_paths(loop.body, ()):
        if isinstance(instance, Barrier):
            return False
        chosen = chosen or any(loop.iterator in variables(s.value) for s in own_subscripts(instance, scop))
    return chosen


@frozen
class OwnSubscript:
    """A subscript of an array that belongs to a thread; ``in_array``: it says which of the thread's elements it is."""

    value: IndexExpression
    in_array: bool


def own_subscripts(instance: Scheduled, scop: Scop) -> Iterator[OwnSubscript]:
    """Subscripts of arrays that belong to a thread: among the arguments behind the statement's own iterators.

    Those of what a copy into one reads are among them: the loop around it that chooses there is short, and unrolled.
    """
    statement = scop.statement(instance.statement)
    buffers: Mapping[str, Buffer] = {p.buffer.name: p.buffer for p in scop.promotions}
    if all(buffers[access.buffer].shared for access in statement.promoted):
        return  # copies into shared memory may have a number in place of subscripts
    loads = any(statement.name == promotion.loads for promotion in scop.promotions)
    local = iter(instance.arguments[len(instance.arguments) - _count(instance, scop) :])
    # The subscripts of what a copy writes are its own iterators, which come first.
    for access in sorted(statement.promoted, key=lambda access: loads and not access.writes):
        buffer = buffers[access.buffer]
        for stride in buffer.layout.strides:
            subscript = next(local)
            if loads or not buffer.shared:
                yield OwnSubscript(subscript, in_array=not buffer.shared and stride > 0)


def _count(instance: Scheduled, scop: Scop) -> int:
    return sum(_rank(scop, access.buffer) for access in scop.statement(instance.statement).promoted)


def _rank(scop: Scop, buffer: str) -> int:
    return next(len(p.buffer.layout.shape) for p in scop.promotions if p.buffer.name == buffer)
