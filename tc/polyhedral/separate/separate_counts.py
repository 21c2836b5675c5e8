"""Index-set splitting for threads: full work is separated from partial work.

Where a thread runs fewer iterations than others of a loop over its private array, a guard inside the loop excludes them
(``tc.polyhedral.generate.constant_trip_counts``).  Such guards keep the compiler from holding loop-invariant values in
registers, so a guard around the whole loop decides whether any iteration is excluded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, assert_never

from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
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
    Matrices,
    variables,
)

_REPEATED: Final = (LoopKind.SEQUENTIAL, LoopKind.REDUCTION)


def separate_counts(root: LoopTree) -> LoopTree:
    """The loops with a guard around every repeated nest in which threads may leave out iterations.

    All threads get to barriers, so these stay outside.
    """
    match root:
        case Leaf():
            return root
        case Block(children):
            return Block(tuple(separate_counts(child) for child in children))
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else separate_counts(otherwise)
            return Guard(condition, separate_counts(then), other)
        case Loop(kind=kind) if kind in _REPEATED and _is_plain(root):
            return _separated(root)
        case Loop() | Allocation():
            return replace(root, body=separate_counts(root.body))
        case _:
            assert_never(root)


def _is_plain(nest: Loop) -> bool:
    """Whether there is nothing inside that belongs to all iterations or all threads."""
    return all(
        not isinstance(leaf, Barrier) and not any(isinstance(step, Allocation) for step in path)
        for leaf, path in loop_paths(nest, ())
    )


def _separated(nest: Loop) -> LoopTree:
    found = list(dict.fromkeys(_counts(nest)))
    if not found:
        return nest
    full = IndexOperation(IndexOperator.LESS_EQUAL, found[0])
    for pair in found[1:]:
        full = IndexOperation(IndexOperator.AND, (full, IndexOperation(IndexOperator.LESS_EQUAL, pair)))
    return Guard(full, _without(nest, frozenset(found)), nest)


def _counts(nest: Loop) -> Iterator[tuple[IndexLiteral, IndexExpression]]:
    """The last iteration of every loop that is cut short, by a guard or its bound, and where it is cut short."""
    for _, path in loop_paths(nest, ()):
        if any(isinstance(step, Matrices) for step in path):
            continue  # which computes whole blocks
        inside: set[str] = set()
        for step in path:
            if isinstance(step, Loop):
                if (ends := _ends(step)) is not None and not inside & variables(ends[1]):
                    yield ends
                inside.add(step.iterator)
                upper = _cut(step)
                if upper is not None and isinstance(step.upper, IndexLiteral) and not inside & variables(upper):
                    yield step.upper, upper


def _ends(loop: Loop) -> tuple[IndexLiteral, IndexExpression] | None:
    """The bounds of a loop around unrolled ones, over a tile of the reduction: of a whole one, and of the last."""
    match loop.upper:
        case IndexOperation(IndexOperator.MINIMUM, (IndexLiteral() as number, other)) if _is_around_unrolled(loop):
            return number, other
        case _:
            return None


def _is_around_unrolled(loop: Loop) -> bool:
    steps = (step for _, path in loop_paths(loop.body, ()) for step in path)
    return loop.kind in _REPEATED and any(isinstance(step, Loop) and step.kind is LoopKind.UNROLLED for step in steps)


def _cut(loop: Loop) -> IndexExpression | None:
    """The upper bound in the guard that is the whole body of an unrolled loop."""
    match loop:
        case Loop(
            iterator=iterator,
            kind=LoopKind.UNROLLED,
            body=Guard(IndexOperation(IndexOperator.LESS_EQUAL, (IndexVariable(name), upper)), _, None),
        ) if name == iterator:
            return upper
        case _:
            return None


def _without(tree: LoopTree, counts: frozenset[tuple[IndexExpression, IndexExpression | None]]) -> LoopTree:
    """The tree without the guards that cut these loops short."""
    match tree:
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(_without(child, counts) for child in children))
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else _without(otherwise, counts)
            return Guard(condition, _without(then, counts), other)
        case Loop(body=body):
            if isinstance(body, Guard) and (tree.upper, _cut(tree)) in counts:
                body = body.then
            ends = _ends(tree)
            upper = ends[0] if ends is not None and ends in counts else tree.upper
            return replace(tree, upper=upper, body=_without(body, counts))
        case Allocation():
            return replace(tree, body=_without(tree.body, counts))
        case _:
            assert_never(tree)
