"""Prefetches for write: when a register tile begins, the lines of a result that it will store are prefetched.

A store needs its cache line.  Stores that miss fill the store queue, and the core stalls; prefetched lines arrive while
the tile is computed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce

from tc.base.frozen import frozen
from tc.language.program.program import Expression, reads_in
from tc.language.program.specialization import Layout, Sizes
from tc.polyhedral.analysis.access_boxes import Side, accesses_in, box_of, iterator_ranges
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.analysis.strides import moved, offset_form
from tc.polyhedral.ir.loops import LINE_BYTES, Buffer, Loop, LoopTree, Prefetch, StatementBody
from tc.polyhedral.prefetch.register_tiles import MOST_LINES, change_tiles, is_large, prefetches, with_prefetches


def prefetch_stores(
    root: LoopTree,
    buffers: Iterable[Buffer],
    bodies: Mapping[str, StatementBody],
    streamed: AbstractSet[str],
    sizes: Sizes = (),
) -> LoopTree:
    """The loops whose register tiles prefetch the lines that they store, but of ``streamed`` results."""
    read = {access.tensor for body in bodies.values() for access in reads_in(body.value)}
    updated = {body.target for body in bodies.values() if body.reduction is not None}
    large = {
        buffer.name: buffer.layout
        for buffer in buffers
        if buffer.writable and is_large(buffer.layout) and buffer.name not in {*streamed, *read, *updated}
    }
    return change_tiles(root, _Walk(large, bodies, sizes).prefetching) if large else root


@frozen
class _Walk:
    """``large``: results that are written only, and written through the caches."""

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
                found += _prefetches(tensor, layout, box, self.sizes)
        lines = sum(own.lines for own in (*prefetches(tile), *found))
        return with_prefetches(tile, found) if lines <= MOST_LINES else tile

    def stores(self, body: StatementBody) -> Iterator[tuple[str, tuple[Expression, ...]]]:
        if body.target in self.large:
            yield body.target, body.subscripts


def _prefetches(tensor: str, layout: Layout, box: Sequence[Side], sizes: Sizes) -> Iterator[Prefetch]:
    """A prefetch for each contiguous row; none where rows are shorter than a line, or too many."""
    first = offset_form((side.first.plus(LinearForm(side.least)) for side in box), layout, sizes)
    elements = 1
    rows: list[list[LinearForm]] = []
    for dimension in sorted(range(len(box)), key=lambda dimension: layout.strides[dimension]):
        side, step = box[dimension], layout.steps[dimension]
        if step == elements:
            elements *= side.extent
        else:
            rows.append([moved(LinearForm(number), step, sizes) for number in range(side.extent)])
    lines = -(-elements * layout.type.itemsize // LINE_BYTES)
    if elements * layout.type.itemsize < LINE_BYTES or math.prod(map(len, rows)) * lines > MOST_LINES:
        return
    for offsets in itertools.product(*rows):
        place = reduce(LinearForm.plus, offsets, first)
        yield Prefetch(tensor, place.expression(), lines, stored=True)
