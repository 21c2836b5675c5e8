"""Index-set splitting of software-pipelined loops: a prologue that only copies, and the steady state.

A pipelined loop runs from some iterations before the first, in which there is nothing to compute.  A condition on its
iterator says so in every iteration.  In the last ones there is nothing left to copy; these stay in the loop, for an
epilogue would be another copy of what is computed.  So does the prologue where threads hold many results: NVRTC 13.5
then keeps more addresses in registers than there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final, assert_never

from tc.polyhedral.analysis.substitute import substituted_in
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
    Sharing,
    conjuncts,
)

# Results that a thread holds beside what a prologue needs.
_FEW_RESULTS: Final = 16


def separate_stages(tree: LoopTree) -> LoopTree:
    """The tree in which loops with a barrier in each iteration are cut where parts of their bodies begin.

    The conditions that said so hold always then, or never, and are left to be dropped.
    """
    match tree:
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(map(separate_stages, children)))
        case Guard(condition, then, otherwise):
            return Guard(condition, separate_stages(then), None if otherwise is None else separate_stages(otherwise))
        case Loop(iterator, IndexLiteral(first), IndexLiteral(last), 1, LoopKind.SEQUENTIAL, Block(children)):
            inside = replace(tree, body=Block(tuple(map(separate_stages, children))))
            if not any(isinstance(child, Barrier) for child in children):
                return inside
            cuts = sorted({own for child in children for own in _cuts(child, iterator) if first < own <= last})
            return Block(tuple(_part(inside, begin, end - 1) for begin, end in pairwise((first, *cuts, last + 1))))
        case Allocation(buffer, _) if buffer.sharing is Sharing.THREAD and buffer.layout.span > _FEW_RESULTS:
            return tree
        case Loop() | Allocation():
            return replace(tree, body=separate_stages(tree.body))
        case _:
            assert_never(tree)


def _cuts(tree: LoopTree, iterator: str) -> Iterator[int]:
    """The iterations in which a part begins to run."""
    if isinstance(tree, Guard) and tree.otherwise is None:
        for condition in conjuncts(tree.condition):
            yield from _cut(condition, iterator)
        yield from _cuts(tree.then, iterator)


def _cut(condition: IndexExpression, iterator: str) -> Iterator[int]:
    match condition:
        case IndexOperation(operator, (IndexVariable(name), IndexLiteral(value))) if name == iterator:
            if operator is IndexOperator.GREATER_EQUAL:
                yield value
            elif operator is IndexOperator.GREATER:
                yield value + 1


def _part(loop: Loop, first: int, last: int) -> LoopTree:
    """The iterations from the first to the last one; a single one is no loop."""
    if first == last:
        return substituted_in(loop.body, {loop.iterator: IndexLiteral(first)})
    return replace(loop, lower=IndexLiteral(first), upper=IndexLiteral(last))
