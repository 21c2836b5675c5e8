"""Prefetches for write: when a register tile begins, the lines of a result that it will store are prefetched.

A store needs its cache line.  Stores that miss fill the store queue, and the core stalls; prefetched lines arrive while
the tile is computed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tc.codegen.index.boxes import Side, accesses_in, box_of, iterator_ranges
from tc.codegen.printer.requests import MOST_LINES, change_tiles, is_large
from tc.codegen.printer.vector_statement import reads_in
from tc.language.program.program import Expression
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.ir.loops import LINE_BYTES, Loop, LoopProgram, Request, StatementBody


def add_store_prefetches(program: LoopProgram) -> LoopProgram:
    """The program whose register tiles prefetch the lines that they store; unchanged where ``ahead`` is 0."""
    read = {access.tensor for body in program.bodies for access in reads_in(body.value)}
    updated = {body.target for body in program.bodies if body.reduction is not None}
    large = {
        buffer.name: buffer.layout
        for buffer in program.buffers
        if buffer.writable and is_large(buffer.layout) and buffer.name not in {*program.streamed, *read, *updated}
    }
    if program.ahead == 0 or not large:
        return program
    walk = _Walk(large, {body.name: body for body in program.bodies})
    return replace(program, root=change_tiles(program.root, walk.asking))


@dataclass(frozen=True, slots=True)
class _Walk:
    """``large``: results that are written only, and written through the caches."""

    large: Mapping[str, Layout]
    bodies: Mapping[str, StatementBody]

    def asking(self, nest: tuple[Loop, ...]) -> Loop:
        """The innermost loop of a nest, which holds a register tile, with its prefetches."""
        tile = nest[-1]
        accesses = list(accesses_in(tile.body, self.bodies, self.stores, iterator_ranges(nest)))
        asked: list[Request] = []
        for tensor, layout in self.large.items():
            own = [access for access in accesses if access.tensor == tensor]
            box = box_of(own, {loop.iterator for loop in nest}, layout.shape)
            if box is not None:
                asked += _requests(tensor, layout, box)
        lines = sum(request.lines for request in (*tile.requests, *asked))
        return replace(tile, requests=(*tile.requests, *asked)) if lines <= MOST_LINES else tile

    def stores(self, body: StatementBody) -> Iterator[tuple[str, tuple[Expression, ...]]]:
        if body.target in self.large:
            yield body.target, body.subscripts


def _requests(tensor: str, layout: Layout, box: Sequence[Side]) -> Iterator[Request]:
    """A prefetch for each contiguous row; none where rows are shorter than a line, or too many."""
    first = LinearForm()
    elements = 1
    rows: list[range] = []
    for side, stride in sorted(zip(box, layout.strides, strict=True), key=lambda item: item[1]):
        first = first.plus(side.first, stride).plus(LinearForm(side.least), stride)
        if stride == elements:
            elements *= side.extent
        else:
            rows.append(range(0, side.extent * stride, stride))
    lines = -(-elements * layout.type.itemsize // LINE_BYTES)
    if elements * layout.type.itemsize < LINE_BYTES or math.prod(map(len, rows)) * lines > MOST_LINES:
        return
    for offsets in itertools.product(*rows):
        yield Request(tensor, first.plus(LinearForm(sum(offsets))).expression(), lines, stored=True)
