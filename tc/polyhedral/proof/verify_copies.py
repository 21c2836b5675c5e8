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
    Guard,
    IndexExpression,
    IndexLiteral,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
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
    for wanted, found in zip_longest(_read(loops, {}, AtValues()), _read(copies, {}, AtValues())):
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
    about: Buffer | Scheduled | tuple[str, int, LoopKind] | None = None


def _read(tree: LoopTree, values: _Values, at: AtValues) -> Iterator[_Step]:
    """From the beginning to the end, with unrolled loops written out and without branches that are settled."""
    match tree:
        case Scheduled(statement, arguments):
            at_values = tuple(at(argument, values) for argument in arguments)
            about = replace(tree, prefetched=()) if isinstance(tree, Instance) else tree
            yield _Step(statement, at_values, replace(about, arguments=()))
        case Prefetch():  # it changes nothing, wherever it stands
            pass
        case Block(children):
            for child in children:
                yield from _read(child, values, at)
        case Guard(condition, then, otherwise):
            holds = at(condition, values)
            branches = then, Block(()) if otherwise is None else otherwise
            if isinstance(holds, IndexLiteral):
                yield from _read(branches[0 if holds.value else 1], values, at)
                return
            for what, branch in zip(("if", "else"), branches, strict=True):
                yield _Step(what, (holds,))
                yield from _read(branch, values, at)
            yield _Step("end if")
        case Allocation(buffer, body):
            yield _Step("array", about=buffer)
            yield from _read(body, values, at)
            yield _Step("end array")
        case Loop(iterator, IndexLiteral(first), IndexLiteral(last), step, LoopKind.FULLY_UNROLLED, body):
            for value in range(first, last + 1, step):
                yield from _read(body, {**values, iterator: value}, at)
        case Loop(iterator, lower, upper, step, kind, body):
            bounds = at(lower, values), at(upper, values)
            yield _Step("for", bounds, (iterator, step, kind))
            yield from _read(body, {name: value for name, value in values.items() if name != iterator}, at)
            yield _Step("end for")
        case _:
            assert_never(tree)
