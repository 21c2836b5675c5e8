"""Where a reduction may keep its partial result in a local variable instead of in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tc.codegen.ranges import Ranges, always_runs, iterator_range
from tc.language.program import IteratorReference, Read, Reduction, walk
from tc.polyhedral.loops import (
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
    StatementBody,
)

_IN_ORDER = (LoopKind.REDUCTION, LoopKind.SEQUENTIAL, LoopKind.UNROLLED)


@dataclass(frozen=True, slots=True)
class Accumulation:
    """A nest of loops all of whose instances reduce into one element.

    ``always_runs``: there is at least one instance.  Where that is not known, the element may not even exist, so
    it must not be touched before an instance has run.
    """

    instance: Instance
    body: StatementBody
    reduction: Reduction
    always_runs: bool


def accumulation(loop: Loop, bodies: Mapping[str, StatementBody], ranges: Ranges) -> Accumulation | None:
    """The accumulation that a REDUCTION loop makes, or None where its target moves or is read inside."""
    if loop.kind is not LoopKind.REDUCTION:
        return None
    path = tuple(_path(loop))
    last = path[-1]
    if not isinstance(last, Instance):
        return None
    body = bodies[last.statement]
    loops = [node for node in path if isinstance(node, Loop)]
    inside = {node.iterator for node in loops}
    located_by = target_iterators(body)
    moves = any(
        name in located_by and variables(argument) & inside
        for name, argument in zip(body.iterators, last.arguments, strict=True)
    )
    if body.reduction is None or moves or _reads_target(body) or any(node.kind not in _IN_ORDER for node in loops):
        return None
    return Accumulation(last, body, body.reduction, _reaches_instance(path, ranges))


def target_iterators(body: StatementBody) -> set[str]:
    """The iterators that choose the element that the statement writes."""
    return {e.name for s in body.subscripts for e in walk(s) if isinstance(e, IteratorReference)}


def variables(expression: IndexExpression) -> set[str]:
    """The names of all variables of an index expression."""
    match expression:
        case IndexLiteral():
            return set()
        case IndexVariable(name):
            return {name}
        case IndexOperation(_, operands):
            return set().union(*(variables(operand) for operand in operands))


def _path(tree: LoopTree) -> Iterator[LoopTree]:
    """The nodes from ``tree`` down to its only instance; ends at a branch if there are several."""
    yield tree
    match tree:
        case Loop():
            yield from _path(tree.body)
        case Guard(_, then, None):
            yield from _path(then)
        case Block((child,)):
            yield from _path(child)


def _reads_target(body: StatementBody) -> bool:
    return any(
        isinstance(e, Read) and (e.tensor == body.target or expression is not body.value)
        for expression in (body.value, *body.subscripts)
        for e in walk(expression)
    )


def _reaches_instance(path: tuple[LoopTree, ...], ranges: Ranges) -> bool:
    for node in path:
        if isinstance(node, Guard) or (isinstance(node, Loop) and not always_runs(node, ranges)):
            return False
        if isinstance(node, Loop):
            ranges = {**ranges, node.iterator: iterator_range(node, ranges)}
    return True
