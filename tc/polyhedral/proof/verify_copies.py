"""Proof of unrolling: unrolled loops are printed as they were proven, checked by pattern and not copy by copy.

What is proven of a loop holds for its iterations.  So it is enough that the text has, in place of the loop, its body at
the value of every iteration, in order.  Both trees are compared in one traversal.  Prefetches may come in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import TypeAlias, assert_never

from tc.base.errors import VerificationError
from tc.base.frozen import frozen
from tc.polyhedral.analysis.fold_index import AtValues
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Buffer,
    GroupMma,
    Guard,
    IndexExpression,
    IndexLiteral,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
    Mma,
    Prefetch,
    Scheduled,
)

# The iterators of unrolled loops.
_Values: TypeAlias = Mapping[str, int]


def prove_copies(loops: LoopTree, copies: LoopTree) -> None:
    """VerificationError where ``copies`` is not ``loops`` with those of the kind ``FULLY_UNROLLED`` written out."""
    found = find_false_copy(loops, copies)
    if found is not None:
        raise VerificationError(f"the unrolled loops are not proven correct: {found}")


def find_false_copy(loops: LoopTree, copies: LoopTree) -> Counterexample | None:
    """The first difference, or None."""
    for wanted, found in zip_longest(_steps(loops), _steps(copies)):
        if wanted != found:
            return Counterexample(Violation.MISCOPIED, f"{found or 'nothing'} instead of {wanted or 'nothing'}")
    return None


@frozen
class _Step:
    """A leaf, or where a loop, a branch or an array begins or ends, with its index expressions.

    ``about``: what else there is to say of it.
    """

    what: str
    expressions: tuple[IndexExpression, ...] = ()
    about: Buffer | Scheduled | tuple[object, ...] | None = None


def _steps(tree: LoopTree) -> list[_Step]:
    """From the beginning to the end, with unrolled loops written out and without branches that are settled."""
    found: list[_Step] = []
    _read(tree, {}, AtValues(), found)
    return found


def _about(leaf: Scheduled) -> Scheduled:
    """The leaf without arguments."""
    bare = replace(leaf, arguments=())
    return replace(bare, prefetched=()) if isinstance(bare, Instance) else bare


def _of_matrices(tree: Mma | GroupMma, values: _Values, at: AtValues) -> Iterator[_Step]:
    """All of them but the nest."""
    about = (tree.shape, tree.lanes, tree.rows, tree.columns, tree.pair, tree.steps)
    match tree:
        case Mma(limit=limit):
            yield _Step("steps", () if limit is None else (at(limit, values),))
            of_operands: tuple[object, ...] = (tree.left.lay, tree.right.lay)
        case GroupMma(chunks=chunks):
            yield _Step("chunks", (), (chunks, tree.awaited))
            of_operands = (tree.left.stride, tree.right.stride)
        case _:
            assert_never(tree)
    for own, more in zip((tree.left, tree.right), of_operands, strict=True):
        at_values = tuple(at(subscript, values) for subscript in own.subscripts)
        yield _Step(own.tensor, at_values, (*about, own.type, more))


def _read(tree: LoopTree, values: _Values, at: AtValues, found: list[_Step]) -> None:
    """Appends the steps of a tree where iterators have these values."""
    match tree:
        case Scheduled(statement, arguments):
            at_values = tuple(at(argument, values) for argument in arguments)
            found.append(_Step(statement, at_values, _about(tree)))
        case Mma() | GroupMma():
            found += _of_matrices(tree, values, at)
            _read(tree.nest, values, at, found)
        case Prefetch():  # it changes nothing, wherever it stands
            pass
        case Block(children):
            for child in children:
                _read(child, values, at, found)
        case Guard(condition, then, otherwise):
            holds = at(condition, values)
            branches = then, Block(()) if otherwise is None else otherwise
            if isinstance(holds, IndexLiteral):
                _read(branches[0 if holds.value else 1], values, at, found)
                return
            for what, branch in zip(("if", "else"), branches, strict=True):
                found.append(_Step(what, (holds,)))
                _read(branch, values, at, found)
            found.append(_Step("end if"))
        case Allocation(buffer, body):
            found.append(_Step("array", about=buffer))
            _read(body, values, at, found)
            found.append(_Step("end array"))
        case Loop(iterator, IndexLiteral(first), IndexLiteral(last), step, LoopKind.FULLY_UNROLLED, body):
            for value in range(first, last + 1, step):
                _read(body, {**values, iterator: value}, at, found)
        case Loop(iterator, lower, upper, step, kind, body):
            bounds = at(lower, values), at(upper, values)
            found.append(_Step("for", bounds, (iterator, step, kind, tree.stream)))
            _read(body, {name: value for name, value in values.items() if name != iterator}, at, found)
            found.append(_Step("end for"))
        case _:
            assert_never(tree)
