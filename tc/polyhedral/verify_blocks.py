"""The proof that loops whose sums are in blocks run the same instances as before, in the same order."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from tc.errors import VerificationError
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


def prove_blocks(before: LoopTree, after: LoopTree) -> None:
    """VerificationError where ``after`` is not ``before`` with loops cut into runs, one behind the other."""
    if _in_one_piece(before) != _in_one_piece(after):
        raise VerificationError("the blocks of sums are not proven correct: their loops run something else")


def _in_one_piece(tree: LoopTree) -> LoopTree:
    """The loops without runs, and without what says where sums are kept."""
    match tree:
        case Instance():
            return tree
        case Block(children):
            return Block(tuple(part for child in children for part in _parts(_in_one_piece(child))))
        case Guard(condition, then, otherwise):
            return Guard(condition, _in_one_piece(then), None if otherwise is None else _in_one_piece(otherwise))
        case Allocation(buffer, body):
            return Allocation(buffer, _in_one_piece(body))
        case Loop(body=body, lower=IndexLiteral(0), upper=IndexLiteral(0)) if tree.folds and not _mentions(
            body, tree.iterator
        ):
            return _in_one_piece(body)
        case Loop(body=Loop() as inner) if tree.folds and _goes_on(tree, inner):
            return _in_one_piece(replace(inner, lower=tree.lower, upper=tree.upper))
        case Loop():
            kind = LoopKind.SEQUENTIAL if tree.kind is LoopKind.REDUCTION else tree.kind
            return replace(tree, kind=kind, body=_in_one_piece(tree.body), totals=(), folds=())
        case _:
            assert_never(tree)


def _parts(tree: LoopTree) -> tuple[LoopTree, ...]:
    return tree.children if isinstance(tree, Block) else (tree,)


def _goes_on(outer: Loop, inner: Loop) -> bool:
    """Whether every run of the inner loop ends right before the next one begins, and the last one with the outer."""
    begin = IndexVariable(outer.iterator)
    end = IndexOperation(IndexOperator.ADD, (begin, IndexLiteral(outer.step - inner.step)))
    if inner.lower != begin or outer.step % inner.step or _mentions(inner.body, outer.iterator):
        return False
    match outer.lower, outer.upper:
        case IndexLiteral(lower), IndexLiteral(upper) if inner.upper == end:
            return ((upper - lower) // inner.step + 1) % (outer.step // inner.step) == 0
    return inner.upper == IndexOperation(IndexOperator.MINIMUM, (end, outer.upper))


def _mentions(tree: LoopTree, iterator: str) -> bool:
    def uses(expression: IndexExpression) -> bool:
        return iterator in variables(expression)

    match tree:
        case Instance(_, arguments):
            return any(map(uses, arguments))
        case Block(children):
            return any(_mentions(child, iterator) for child in children)
        case Guard(condition, then, otherwise):
            parts = (then,) if otherwise is None else (then, otherwise)
            return uses(condition) or any(_mentions(part, iterator) for part in parts)
        case Allocation(_, body):
            return _mentions(body, iterator)
        case Loop():
            return uses(tree.lower) or uses(tree.upper) or _mentions(tree.body, iterator)
        case _:
            assert_never(tree)
