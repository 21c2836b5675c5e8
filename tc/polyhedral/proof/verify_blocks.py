"""Proof of blocked sums: the loops with totals add up the same terms as before.

They run the same instances in the same order.  Every partial sum is added to one total, which is initialized before its
loop and written back after it; while that loop runs, nothing else accesses the elements of the partial sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from tc.base.errors import VerificationError
from tc.base.frozen import frozen
from tc.language.isl.affine import parameter_name
from tc.polyhedral.analysis.accumulate import accumulation
from tc.polyhedral.analysis.element_counts import Path
from tc.polyhedral.analysis.ranges import Range
from tc.polyhedral.analysis.reads import accesses
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    GroupMma,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Leaf,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    Mma,
    Prefetch,
    Scheduled,
    StatementBody,
    variables,
)
from tc.polyhedral.ir.totals import Fold, Total


def prove_blocks(program: LoopProgram, after: LoopTree) -> None:
    """VerificationError where ``after`` is not the program's loops cut into runs, one behind the other, with totals."""
    if _in_one_piece(program.root) != _in_one_piece(after):
        raise _refused("their loops run something else")
    ranges = {parameter_name(name): Range(1, most) for name, most in program.sizes}
    _Totals({body.name: body for body in program.bodies}).prove(after, Path(ranges), frozenset())


def _refused(reason: str) -> VerificationError:
    return VerificationError(f"the blocks of sums are not proven correct: {reason}")


@frozen
class _Totals:
    bodies: Mapping[str, StatementBody]

    def prove(self, tree: LoopTree, path: Path, around: frozenset[str]) -> None:
        """``around``: the statements that have a total there."""
        match tree:
            case Leaf():
                pass
            case Block(children):
                for child in children:
                    self.prove(child, path, around)
            case Guard(_, then, otherwise):
                for branch in (then, otherwise):
                    if branch is not None:
                        self.prove(branch, path, around)
            case Allocation(_, body):
                self.prove(body, path, around)
            case Loop(totals=totals, folds=folds):
                for total in totals:
                    if total.statement in around:
                        raise _refused(f"{total.statement} has a total inside of another one")
                    self._prove_alone(tree, total, path)
                    around |= {total.statement}
                self._prove_folds(folds, around)
                self.prove(tree.body, path.inside(tree), around)
            case _:
                assert_never(tree)

    def _prove_folds(self, folds: tuple[Fold, ...], around: frozenset[str]) -> None:
        folded = [fold.statement for fold in folds]
        for statement in folded:
            if statement not in around:
                raise _refused(f"partial sums of {statement} are added to no total")
            if folded.count(statement) > 1:
                raise _refused(f"partial sums of {statement} are added to their total twice")

    def _prove_alone(self, loop: Loop, total: Total, path: Path) -> None:
        """While the loop runs, nothing but the statement touches what its partial sums are in."""
        if total.buffer is None:
            found = accumulation(loop, self.bodies, path.ranges, several=True, always=True)
            if found is None or all(partial.body.name != total.statement for partial in found.partials):
                raise _refused(f"{total.statement} does not add to one element, or that is used meanwhile")
            return
        for instance, inside in loop_paths(loop, ()):
            if any(isinstance(step, Allocation) and step.buffer.name == total.buffer for step in inside):
                raise _refused(f"{total.buffer} does not last as long as its total")
            body = self.bodies.get(instance.statement)  # barriers have none
            touched = 0 if body is None else sum(tensor == total.buffer for tensor, _ in accesses(body))
            if touched > (1 if instance.statement == total.statement else 0):
                raise _refused(f"{instance.statement} uses {total.buffer} while partial sums are in it")


def _in_one_piece(tree: LoopTree) -> LoopTree:
    """The loops without runs, and without what says where sums are kept."""
    match tree:
        case Leaf():
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
        case Scheduled(_, arguments):
            return any(map(uses, arguments))
        case Mma() | GroupMma():
            limit = () if isinstance(tree, GroupMma) or tree.limit is None else (tree.limit,)
            parts = (*tree.left.subscripts, *tree.right.subscripts, *limit)
            return any(map(uses, parts)) or _mentions(tree.nest, iterator)
        case Prefetch(offset=offset):
            return uses(offset)
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
