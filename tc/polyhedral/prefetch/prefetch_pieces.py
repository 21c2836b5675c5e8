"""Prefetches in loops that fill a piece of a result, which is then written past the caches.

While a piece is written, a core asks for little of what the next one is computed from, and hardware prefetchers stop at
the end of a page.  Lines that are asked for some pieces earlier keep memory busy meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.language.program.program import Expression, reads_in
from tc.language.program.specialization import Layout, Sizes
from tc.polyhedral.analysis.access_boxes import accesses_in, nest_of, trips
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Buffer,
    Guard,
    Instance,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    Prefetch,
    StatementBody,
)
from tc.polyhedral.prefetch.register_tiles import MOST_LINES, is_large
from tc.polyhedral.prefetch.rows import lines_ahead, place_of

# Measured on Zen 3: with 2 KiB a copy gains a third less, with 16 KiB no more.
_AHEAD_BYTES: Final = 8 << 10


def prefetch_pieces(
    root: LoopTree, buffers: Iterable[Buffer], bodies: Mapping[str, StatementBody], sizes: Sizes = ()
) -> LoopTree:
    """The loops, of which those that fill pieces of streamed results ask for later parts of large arguments."""
    large = {own.name: own.layout for own in buffers if not own.writable and is_large(own.layout)}
    return _Walk(large, bodies, sizes).visit(root, None) if large else root


@frozen
class _Walk:
    large: Mapping[str, Layout]
    bodies: Mapping[str, StatementBody]
    sizes: Sizes

    def visit(self, tree: LoopTree, around: Loop | None) -> LoopTree:
        """The tree with prefetches; ``around``: the innermost loop that it is in."""
        match tree:
            case Loop():
                return replace(tree, body=self.visit(tree.body, tree))
            case Block(children):
                return self.block(children, around)
            case Allocation(buffer, body):
                return Allocation(buffer, self.visit(body, around))
            case Guard(condition, then, otherwise):
                other = None if otherwise is None else self.visit(otherwise, around)
                return Guard(condition, self.visit(then, around), other)
            case Leaf():
                return tree
            case _:
                assert_never(tree)

    def block(self, children: tuple[LoopTree, ...], around: Loop | None) -> Block:
        if around is None or not any(_streams(child) for child in children):
            return Block(tuple(self.visit(child, around) for child in children))
        found: list[LoopTree] = []
        left = MOST_LINES
        for child in children:
            if isinstance(child, Loop) and child.kind is LoopKind.VECTOR and not _streams(child):
                for own in dict.fromkeys(self.ahead(child, around)):
                    if own.lines <= left:
                        found.append(own)
                        left -= own.lines
            found.append(child)
        return Block(tuple(found))

    def ahead(self, lanes: Loop, around: Loop) -> Iterator[Prefetch]:
        """What is read along the lanes some pieces later, where pieces are read one behind the other."""
        count = trips(lanes)
        for access in accesses_in(lanes.body, self.bodies, self.reads, {}):
            layout = self.large[access.tensor]
            place, size = place_of(access, layout, self.sizes), layout.type.itemsize
            step = (place.slope(around.iterator) or 0) * around.step
            if count is None or place.slope(lanes.iterator) != 1 or step != count:
                continue
            yield lines_ahead(access.tensor, place.expression(), lanes, count, size, _AHEAD_BYTES)

    def reads(self, body: StatementBody) -> Iterator[tuple[str, tuple[Expression, ...]]]:
        return ((read.tensor, read.subscripts) for read in reads_in(body.value) if read.tensor in self.large)


def _streams(tree: LoopTree) -> bool:
    """Whether loops do nothing but write past the caches."""
    if not isinstance(tree, Loop):
        return False
    instance = nest_of(tree)[1]
    return isinstance(instance, Instance) and instance.nontemporal
