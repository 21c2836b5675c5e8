"""Loops over what a thread keeps to itself run a number of times that the compiler can see.

An array whose subscripts are known when the loops are unrolled lies in registers.  A loop over it that stops earlier in
some threads or blocks goes on to the longest run, and a guard says where it does nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, assert_never

from tc.polyhedral.loop_execution import loop_paths
from tc.polyhedral.loops import (
    Allocation,
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
    variables,
)
from tc.polyhedral.ranges import Ranges, iterator_range, range_of
from tc.polyhedral.scop import Scop

# Longer loops are not unrolled: no array of so many elements stays in registers.
_MOST: Final = 64
_CHANGED: Final = {LoopKind.SEQUENTIAL: LoopKind.UNROLLED, LoopKind.REDUCTION: LoopKind.REDUCTION}


def fix_counts(root: LoopTree, scop: Scop) -> LoopTree:
    """The loops with constant bounds where their iterators choose an element of a thread's own array."""
    return _fixed(root, scop, {})


def _fixed(tree: LoopTree, scop: Scop, ranges: Ranges) -> LoopTree:
    match tree:
        case Instance():
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
    if loop.kind not in _CHANGED or loop.step != 1 or not isinstance(loop.lower, IndexLiteral):
        return loop
    most = range_of(loop.upper, ranges).most
    if math.isinf(most) or most - loop.lower.value >= _MOST or not _chooses(loop, scop):
        return loop
    changed = replace(loop, kind=_CHANGED[loop.kind], upper=IndexLiteral(int(most)))
    if changed.upper == loop.upper:
        return changed
    runs = IndexOperation(IndexOperator.LESS_EQUAL, (IndexVariable(loop.iterator), loop.upper))
    return replace(changed, body=Guard(runs, loop.body, None))


def _chooses(loop: Loop, scop: Scop) -> bool:
    """Whether the iterator is in a subscript of a thread's own array, and all threads need not meet inside."""
    chosen = False
    for instance, _ in loop_paths(loop.body, ()):
        if instance.statement in scop.barrier_names:
            return False
        chosen = chosen or any(loop.iterator in variables(s) for s in _own_subscripts(instance, scop))
    return chosen


def _own_subscripts(instance: Instance, scop: Scop) -> Iterator[IndexExpression]:
    """Subscripts of arrays that belong to a thread: among the arguments behind the statement's own iterators."""
    statement = scop.statement(instance.statement)
    shared: Mapping[str, bool] = {p.buffer.name: p.buffer.shared for p in scop.promotions}
    if all(shared[access.buffer] for access in statement.promoted):
        return  # copies into shared memory may have a number in place of subscripts
    local = iter(instance.arguments[len(instance.arguments) - _count(instance, scop) :])
    for access in statement.promoted:
        for _ in range(_rank(scop, access.buffer)):
            subscript = next(local)
            if not shared[access.buffer]:
                yield subscript


def _count(instance: Instance, scop: Scop) -> int:
    return sum(_rank(scop, access.buffer) for access in scop.statement(instance.statement).promoted)


def _rank(scop: Scop, buffer: str) -> int:
    return next(len(p.buffer.layout.shape) for p in scop.promotions if p.buffer.name == buffer)
