"""Every small way to spoil a loop tree, and chosen ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tc.polyhedral.ir.loops import (
    Allocation,
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
    Scheduled,
)


def mutants(tree: LoopTree) -> Iterator[tuple[str, LoopTree]]:
    """Trees that differ from ``tree`` in one place, with a name for the change."""
    match tree:
        case Scheduled():
            yield "dropped", Block(())
            yield "doubled", Block((tree, tree))
            for position, argument in enumerate(tree.arguments):
                moved = (*tree.arguments[:position], plus(argument, 1), *tree.arguments[position + 1 :])
                yield f"argument {position} shifted", replace(tree, arguments=moved)
        case Block(children):
            yield "reversed", Block(tuple(reversed(children)))
            for position, child in enumerate(children):
                rest = (*children[:position], *children[position + 1 :])
                yield f"child {position} dropped", Block(rest)
                yield f"child {position} doubled", Block((*children, child))
                for name, changed in mutants(child):
                    spoiled = (*children[:position], changed, *children[position + 1 :])
                    yield f"{position}/{name}", Block(spoiled)
        case Guard(_, then, otherwise):
            yield "guard removed", then
            for name, changed in mutants(then):
                yield f"then/{name}", Guard(tree.condition, changed, otherwise)
        case Allocation(buffer, body):
            for name, changed in mutants(body):
                yield f"{buffer.name}/{name}", Allocation(buffer, changed)
        case Loop():
            yield from _loop_mutants(tree)


def nodes(tree: LoopTree) -> Iterator[LoopTree]:
    """The tree and everything in it, from the root."""
    yield tree
    match tree:
        case Block(children):
            for child in children:
                yield from nodes(child)
        case Guard(_, then, otherwise):
            yield from nodes(then)
            if otherwise is not None:
                yield from nodes(otherwise)
        case Loop() | Allocation():
            yield from nodes(tree.body)
        case Leaf():
            pass


@dataclass(frozen=True)
class Edit:
    """A spoiled tree, and the loops that run exactly what it runs too much or too little."""

    mutant: LoopTree
    difference: LoopTree


def edits(tree: LoopTree, edit: Callable[[LoopTree], Iterator[Edit]]) -> Iterator[Edit]:
    """Every tree in which one node is replaced by something that ``edit`` makes of it."""
    yield from edit(tree)
    match tree:
        case Leaf():
            return
        case Block(children):
            for position, child in enumerate(children):
                for e in edits(child, edit):
                    yield Edit(Block((*children[:position], e.mutant, *children[position + 1 :])), e.difference)
        case Guard(condition, then, otherwise):
            for e in edits(then, edit):
                yield Edit(Guard(condition, e.mutant, otherwise), Guard(condition, e.difference, None))
            for e in edits(otherwise, edit) if otherwise is not None else ():
                yield Edit(Guard(condition, then, e.mutant), Guard(condition, Block(()), e.difference))
        case Loop() | Allocation():
            for e in edits(tree.body, edit):
                yield Edit(replace(tree, body=e.mutant), replace(tree, body=e.difference))


def ends_early(loop: Loop) -> Edit:
    """One iteration less."""
    return Edit(replace(loop, upper=plus(loop.upper, -loop.step)), _last(loop))


def ends_late(loop: Loop) -> Edit:
    """One iteration more."""
    longer = replace(loop, upper=plus(loop.upper, loop.step))
    return Edit(longer, _last(longer))


def _last(loop: Loop) -> Loop:
    """The last iteration, if there is one."""
    last = plus(loop.upper, 1 - loop.step)
    return replace(loop, lower=IndexOperation(IndexOperator.MAXIMUM, (loop.lower, last)))


def again(loop: Loop) -> Edit:
    """The loop runs twice."""
    return Edit(Loop("again", IndexLiteral(0), IndexLiteral(1), 1, LoopKind.PARALLEL, loop), loop)


def _loop_mutants(loop: Loop) -> Iterator[tuple[str, LoopTree]]:
    name = loop.iterator
    yield f"{name} starts early", replace(loop, lower=plus(loop.lower, -1))
    yield f"{name} starts late", replace(loop, lower=plus(loop.lower, 1))
    yield f"{name} ends early", replace(loop, upper=plus(loop.upper, -1))
    yield f"{name} ends late", replace(loop, upper=plus(loop.upper, 1))
    yield f"{name} skips", replace(loop, step=loop.step + 1)
    for kind in (LoopKind.PARALLEL, LoopKind.VECTOR, LoopKind.REDUCTION, LoopKind.SEQUENTIAL):
        if kind is not loop.kind:
            yield f"{name} is {kind.value}", replace(loop, kind=kind)
    hole = IndexOperation(IndexOperator.EQUAL, (IndexVariable(name), loop.lower))
    yield f"{name} misses a point", replace(loop, body=Guard(hole, Block(()), loop.body))
    if isinstance(loop.body, Loop) and not mentions(loop.body, name):
        inner = loop.body
        yield f"{name} interchanged", replace(inner, body=replace(loop, body=inner.body))
    if isinstance(loop.body, Allocation):
        allocation = loop.body
        yield f"{name} keeps {allocation.buffer.name}", replace(allocation, body=replace(loop, body=allocation.body))
    for change, changed in mutants(loop.body):
        yield f"{name}/{change}", replace(loop, body=changed)


def plus(expression: IndexExpression, value: int) -> IndexExpression:
    """The expression and a number."""
    return IndexOperation(IndexOperator.ADD, (expression, IndexLiteral(value)))


def mentions(loop: Loop, name: str) -> bool:
    """Whether the bounds of the loop depend on an iterator."""
    return any(_occurs(bound, name) for bound in (loop.lower, loop.upper))


def _occurs(expression: IndexExpression, name: str) -> bool:
    match expression:
        case IndexLiteral():
            return False
        case IndexVariable(other):
            return other == name
        case IndexOperation(_, operands):
            return any(_occurs(operand, name) for operand in operands)
