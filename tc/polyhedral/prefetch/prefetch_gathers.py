"""Prefetches of gathers: a loop asks for the rows that its gathers read some iterations later.

Hardware prefetchers do not know where a gather reads next; its indices do, and they are read ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from tc.base.frozen import frozen
from tc.language.program.program import Read, reads_in, walk
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    StatementBody,
)


def prefetch_gathers(root: LoopTree, bodies: Mapping[str, StatementBody], distance: int) -> LoopTree:
    """The loops whose gathers along the lanes of a register tile are prefetched so many iterations ahead; 0: none are.

    The iterations are those of the innermost loop of the tile around the lanes.
    """
    gathering = {name: body for name, body in bodies.items() if _gathers(body)}
    if distance == 0 or not gathering:
        return root
    return _Walk(gathering, distance).visit(root, _Place())


def _gathers(body: StatementBody) -> bool:
    return any(
        isinstance(part, Read)
        for read in reads_in(body.value)
        for subscript in read.subscripts
        for part in walk(subscript)
    )


@frozen
class _Place:
    """``buffer``: of the innermost allocation around; ``innermost``: the innermost loop in it that goes on over the
    tile; ``lanes``: inside of a loop over lanes.
    """

    buffer: str | None = None
    innermost: Loop | None = None
    lanes: bool = False


@frozen
class _Walk:
    """``bodies``: of the statements that gather."""

    bodies: Mapping[str, StatementBody]
    distance: int

    def visit(self, tree: LoopTree, place: _Place) -> LoopTree:
        match tree:
            case Instance():
                return self.instance(tree, place)
            case Leaf():
                return tree
            case Block(children):
                return Block(tuple(self.visit(child, place) for child in children))
            case Guard(condition, then, otherwise):
                other = None if otherwise is None else self.visit(otherwise, place)
                return Guard(condition, self.visit(then, place), other)
            case Allocation(buffer, body):
                return Allocation(buffer, self.visit(body, _Place(buffer.name)))
            case Loop(kind=LoopKind.REGISTER):
                return replace(tree, body=self.visit(tree.body, place))
            case Loop(kind=LoopKind.VECTOR):
                return replace(tree, body=self.visit(tree.body, replace(place, lanes=True)))
            case Loop():
                return replace(tree, body=self.visit(tree.body, replace(place, innermost=tree)))
            case _:
                assert_never(tree)

    def instance(self, instance: Instance, place: _Place) -> Instance:
        body, loop = self.bodies.get(instance.statement), place.innermost
        if body is None or loop is None or not place.lanes:
            return instance
        if place.buffer not in {body.target, *(read.tensor for read in reads_in(body.value))}:
            return instance
        distance = IndexLiteral(self.distance * loop.step)
        ahead = IndexOperation(IndexOperator.ADD, (IndexVariable(loop.iterator), distance))
        later = (substituted(argument, {loop.iterator: ahead}) for argument in instance.arguments)
        return replace(instance, prefetched=tuple(later))
