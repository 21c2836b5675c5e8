"""Prefetches in loops that copy rows of a large tensor which lie far apart, as those of a panel do.

Every row is in other lines, and often in another page, where hardware prefetchers begin anew: a core waits for a few
rows at a time.  Rows that are asked for some iterations earlier arrive together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.language.program.program import Expression, Read
from tc.language.program.specialization import Layout, Sizes
from tc.polyhedral.analysis.access_boxes import accesses_in, trips
from tc.polyhedral.analysis.offsets import LinearForm, index_form
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.ir.loops import (
    LINE_BYTES,
    Allocation,
    Block,
    Buffer,
    Guard,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    Prefetch,
    StatementBody,
)
from tc.polyhedral.prefetch.register_tiles import is_large
from tc.polyhedral.prefetch.rows import place_of

# Rows ahead: as many as a core waits for at a time.
_AHEAD: Final = 8
# Longer rows are streams of their own, and nearer ones are one stream.
_LONGEST_BYTES: Final = 512
_NEAREST_BYTES: Final = 1024


def prefetch_copies(
    root: LoopTree, buffers: Iterable[Buffer], bodies: Mapping[str, StatementBody], sizes: Sizes = ()
) -> LoopTree:
    """The loops in which copies of rows of large arguments ask for later rows."""
    arguments = list(buffers)
    large = {own.name: own.layout for own in arguments if not own.writable and is_large(own.layout)}
    inner = {body.name for body in bodies.values() if body.target not in {own.name for own in arguments}}
    return _Walk(large, bodies, inner, sizes).visit(root) if large else root


@frozen
class _Walk:
    """``copies``: the statements that write what is no argument."""

    large: Mapping[str, Layout]
    bodies: Mapping[str, StatementBody]
    copies: set[str]
    sizes: Sizes

    def visit(self, tree: LoopTree) -> LoopTree:
        """The tree with each loop over rows that are copied along lanes changed."""
        match tree:
            case Loop(kind=LoopKind.SEQUENTIAL, body=Loop(kind=LoopKind.VECTOR) as lanes):
                ahead = list(self.rows(tree, lanes))
                return replace(tree, body=Block((*ahead, lanes))) if ahead else tree
            case Loop():
                return replace(tree, body=self.visit(tree.body))
            case Block(children):
                return Block(tuple(self.visit(child) for child in children))
            case Allocation(buffer, body):
                return Allocation(buffer, self.visit(body))
            case Guard(condition, then, otherwise):
                other = None if otherwise is None else self.visit(otherwise)
                return Guard(condition, self.visit(then), other)
            case Leaf():
                return tree
            case _:
                assert_never(tree)

    def rows(self, rows: Loop, lanes: Loop) -> Iterator[Prefetch]:
        """The row that is copied some iterations later."""
        count = trips(lanes)
        for access in accesses_in(lanes.body, self.bodies, self.copied, {}):
            layout = self.large[access.tensor]
            place = place_of(access, layout, self.sizes)
            size, step = layout.type.itemsize, (place.slope(rows.iterator) or 0) * rows.step
            if count is None or place.slope(lanes.iterator) != 1 or abs(step) * size < _NEAREST_BYTES:
                continue
            if count * size <= _LONGEST_BYTES:
                first = index_form(substituted(place.expression(), {lanes.iterator: lanes.lower}))
                offset = first.plus(LinearForm(_AHEAD * step))
                yield Prefetch(access.tensor, offset.expression(), -(-count * size // LINE_BYTES))

    def copied(self, body: StatementBody) -> Iterator[tuple[str, tuple[Expression, ...]]]:
        if body.name in self.copies and isinstance(body.value, Read) and body.value.tensor in self.large:
            yield body.value.tensor, body.value.subscripts
