"""Prefetches for write in loops that fill a large tensor with a number, such as the 0 that a sum begins with.

Stores that miss the caches read their lines first, and a core waits for few of them at a time.  Lines that are asked
for earlier arrive in time; the hardware's prefetchers are late for stores of whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.language.program.program import Expression, reads_in
from tc.language.program.specialization import Layout, Sizes
from tc.polyhedral.analysis.access_boxes import accesses_in, trips
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Buffer,
    Guard,
    IndexExpression,
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
    Use,
)
from tc.polyhedral.prefetch.rows import lines_ahead, place_of

# Smaller tensors may be in a last-level cache.
_LARGE_BYTES: Final = 1 << 24
# How far ahead lines are asked for, and how much one loop over lanes fills at most.
_AHEAD_BYTES: Final = 1 << 10


def strip_fills(
    root: LoopTree, buffers: Iterable[Buffer], bodies: Mapping[str, StatementBody], sizes: Sizes = ()
) -> LoopTree:
    """The loops with those over lanes that fill large tensors strip-mined: between strips is place for prefetches."""
    return _Walk.of(buffers, bodies, sizes).visit(root, _in_strips)


def prefetch_fills(
    root: LoopTree, buffers: Iterable[Buffer], bodies: Mapping[str, StatementBody], sizes: Sizes = ()
) -> LoopTree:
    """The loops in which what fills large tensors along lanes asks for the lines of later iterations."""
    return _Walk.of(buffers, bodies, sizes).visit(root, _behind_prefetches)


def fills(body: StatementBody) -> bool:
    """Whether the statement stores what no tensor has to do with."""
    return body.reduction is None and body.owned is None and not any(True for _ in reads_in(body.value))


@frozen
class _Walk:
    """``filling``: the statements whose values read nothing and whose targets are large."""

    large: Mapping[str, Layout]
    bodies: Mapping[str, StatementBody]
    filling: AbstractSet[str]
    sizes: Sizes

    @classmethod
    def of(cls, buffers: Iterable[Buffer], bodies: Mapping[str, StatementBody], sizes: Sizes) -> _Walk:
        """What there is to fill."""
        large = {
            buffer.name: buffer.layout
            for buffer in buffers
            if buffer.writable and buffer.layout.span * buffer.layout.type.itemsize >= _LARGE_BYTES
        }
        filling = {name for name, body in bodies.items() if body.target in large and fills(body)}
        return cls(large, bodies, filling, sizes)

    def visit(self, tree: LoopTree, change: Callable[[Loop, Sequence[_Row]], LoopTree]) -> LoopTree:
        """The tree with each loop whose lanes fill rows changed."""
        if not self.filling:
            return tree
        match tree:
            case Loop(body=Instance(nontemporal=True)):
                return tree
            case Loop(kind=LoopKind.VECTOR):
                rows = list(self.rows(tree))
                return change(tree, rows) if rows else tree
            case Loop():
                return replace(tree, body=self.visit(tree.body, change))
            case Block(children):
                return Block(tuple(self.visit(child, change) for child in children))
            case Allocation(buffer, body):
                return Allocation(buffer, self.visit(body, change))
            case Guard(condition, then, otherwise):
                other = None if otherwise is None else self.visit(otherwise, change)
                return Guard(condition, self.visit(then, change), other)
            case Leaf():
                return tree
            case _:
                assert_never(tree)

    def rows(self, loop: Loop) -> Iterator[_Row]:
        """What the lanes fill, element by element."""
        for access in accesses_in(loop.body, self.bodies, self.fills, {}):
            layout = self.large[access.tensor]
            place = place_of(access, layout, self.sizes)
            if place.slope(loop.iterator) == 1:
                yield _Row(access.tensor, place.expression(), layout.type.itemsize)

    def fills(self, body: StatementBody) -> Iterator[tuple[str, tuple[Expression, ...]]]:
        if body.name in self.filling:
            yield body.target, body.subscripts


def _in_strips(loop: Loop, rows: Sequence[_Row]) -> Loop:
    """The loop in strips, unless it is no longer than one."""
    strip = _strip(rows)
    count = trips(loop)
    if count is not None and count <= strip:
        return loop
    start = IndexVariable(f"{loop.iterator}_strip")
    end = IndexOperation(IndexOperator.ADD, (start, IndexLiteral(strip - 1)))
    inner = replace(loop, lower=start, upper=IndexOperation(IndexOperator.MINIMUM, (end, loop.upper)))
    return Loop(start.name, loop.lower, loop.upper, strip, LoopKind.SEQUENTIAL, inner)


def _behind_prefetches(loop: Loop, rows: Sequence[_Row]) -> LoopTree:
    """The loop behind prefetches of as much as it fills."""
    count = min(trips(loop) or _strip(rows), _strip(rows))
    ahead = (lines_ahead(row.tensor, row.place, loop, count, row.bytes, _AHEAD_BYTES, Use.STORE) for row in rows)
    return Block((*ahead, loop))


def _strip(rows: Sequence[_Row]) -> int:
    """How many elements the lanes fill at a time."""
    return min(_AHEAD_BYTES // row.bytes for row in rows)


@frozen
class _Row:
    """Elements of a tensor that lie side by side; ``place``: the offset of one; ``bytes``: its size."""

    tensor: str
    place: IndexExpression
    bytes: int
