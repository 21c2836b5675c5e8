"""Prefetches for write: when a register tile begins, the lines of a tensor that it will store are prefetched.

A store needs its cache line.  Stores that miss fill the store queue, and the core stalls; prefetched lines arrive while
the tile is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from tc.base.frozen import frozen
from tc.language.program.program import Expression
from tc.language.program.specialization import Layout, Sizes
from tc.polyhedral.analysis.access_boxes import accesses_in, box_of, iterator_ranges
from tc.polyhedral.ir.loops import Buffer, Loop, LoopTree, Prefetch, StatementBody, Use
from tc.polyhedral.prefetch.register_tiles import MOST_LINES, change_tiles, is_large, prefetches, with_prefetches
from tc.polyhedral.prefetch.rows import rows_of


def prefetch_stores(
    root: LoopTree,
    buffers: Iterable[Buffer],
    bodies: Mapping[str, StatementBody],
    streamed: AbstractSet[str],
    sizes: Sizes = (),
) -> LoopTree:
    """The loops whose register tiles prefetch the lines that they store, but of ``streamed`` results."""
    updated = {body.target for body in bodies.values() if body.reduction is not None}
    large = {
        buffer.name: buffer.layout
        for buffer in buffers
        if buffer.writable and is_large(buffer.layout) and buffer.name not in {*streamed, *updated}
    }
    return change_tiles(root, _Walk(large, bodies, sizes).prefetching) if large else root


@frozen
class _Walk:
    """``large``: what is set, not updated, and written through the caches."""

    large: Mapping[str, Layout]
    bodies: Mapping[str, StatementBody]
    sizes: Sizes

    def prefetching(self, nest: tuple[Loop, ...]) -> Loop:
        """The innermost loop of a nest, which holds a register tile, with its prefetches."""
        tile = nest[-1]
        accesses = list(accesses_in(tile.body, self.bodies, self.stores, iterator_ranges(nest)))
        found: list[Prefetch] = []
        for tensor, layout in self.large.items():
            own = [access for access in accesses if access.tensor == tensor]
            box = box_of(own, {loop.iterator for loop in nest}, layout.shape)
            if box is not None:
                found += rows_of(tensor, layout, box, self.sizes, use=Use.STORE)
        lines = sum(own.lines for own in (*prefetches(tile), *found))
        return with_prefetches(tile, found) if lines <= MOST_LINES else tile

    def stores(self, body: StatementBody) -> Iterator[tuple[str, tuple[Expression, ...]]]:
        if body.target in self.large:
            yield body.target, body.subscripts
