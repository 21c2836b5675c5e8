"""Every small way to spoil a loop tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
)


def mutants(tree: LoopTree) -> Iterator[tuple[str, LoopTree]]:
    """Trees that differ from ``tree`` in one place, with a name for the change."""
    match tree:
        case Instance():
            yield "dropped", Block(())
            yield "doubled", Block((tree, tree))
            for position, argument in enumerate(tree.arguments):
                moved = (*tree.arguments[:position], _plus(argument, 1), *tree.arguments[position + 1 :])
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


def _loop_mutants(loop: Loop) -> Iterator[tuple[str, LoopTree]]:
    name = loop.iterator
    yield f"{name} starts early", replace(loop, lower=_plus(loop.lower, -1))
    yield f"{name} starts late", replace(loop, lower=_plus(loop.lower, 1))
    yield f"{name} ends early", replace(loop, upper=_plus(loop.upper, -1))
    yield f"{name} ends late", replace(loop, upper=_plus(loop.upper, 1))
    yield f"{name} skips", replace(loop, step=loop.step + 1)
    for kind in (LoopKind.PARALLEL, LoopKind.VECTOR, LoopKind.REDUCTION, LoopKind.SEQUENTIAL):
        if kind is not loop.kind:
            yield f"{name} is {kind.value}", replace(loop, kind=kind)
    hole = IndexOperation(IndexOperator.EQUAL, (IndexVariable(name), loop.lower))
    yield f"{name} misses a point", replace(loop, body=Guard(hole, Block(()), loop.body))
    if isinstance(loop.body, Loop) and not _mentions(loop.body, name):
        inner = loop.body
        yield f"{name} interchanged", replace(inner, body=replace(loop, body=inner.body))
    if isinstance(loop.body, Allocation):
        allocation = loop.body
        yield f"{name} keeps {allocation.buffer.name}", replace(allocation, body=replace(loop, body=allocation.body))
    for change, changed in mutants(loop.body):
        yield f"{name}/{change}", replace(loop, body=changed)


def _plus(expression: IndexExpression, value: int) -> IndexExpression:
    return IndexOperation(IndexOperator.ADD, (expression, IndexLiteral(value)))


def _mentions(loop: Loop, name: str) -> bool:
    return any(_occurs(bound, name) for bound in (loop.lower, loop.upper))


def _occurs(expression: IndexExpression, name: str) -> bool:
    match expression:
        case IndexLiteral():
            return False
        case IndexVariable(other):
            return other == name
        case IndexOperation(_, operands):
            return any(_occurs(operand, name) for operand in operands)
