"""Prefetches of panels: a register tile asks for what lanes read some steps of the reduction later.

Panels of an operand that is larger than a second-level cache come from further away, and hardware prefetchers, which
follow a stream within a page, begin anew with every page of each panel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from tc.base.frozen import frozen
from tc.language.program.program import Expression, reads_in
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.access_boxes import accesses_in, box_of, iterator_ranges
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.analysis.strides import offset_form
from tc.polyhedral.ir.loops import Loop, LoopTree, StatementBody, Use
from tc.polyhedral.ir.scop import Promotion
from tc.polyhedral.prefetch.register_tiles import change_tiles, is_large, reductions, with_prefetch
from tc.polyhedral.prefetch.rows import rows_of

# Steps of a reduction that take about as long as a line from a third-level cache.
_AHEAD: Final = 16
# Lines that a step asks for beside what it reads.
_MOST_LINES: Final = 4


def prefetch_panels(root: LoopTree, promotions: Iterable[Promotion], bodies: Mapping[str, StatementBody]) -> LoopTree:
    """The loops whose register tiles prefetch large operands that lie in panels."""
    large = {
        promotion.buffer.name: promotion.buffer.layout
        for promotion in promotions
        if promotion.panels is not None and is_large(promotion.buffer.layout)
    }
    return change_tiles(root, _Walk(large, bodies).prefetching) if large else root


@frozen
class _Walk:
    large: Mapping[str, Layout]
    bodies: Mapping[str, StatementBody]

    def prefetching(self, nest: tuple[Loop, ...]) -> Loop:
        """The innermost loop of a nest, which holds a register tile, with its prefetches."""
        tile = nest[-1]
        steps = reductions(tile.body)
        if not steps:
            return tile
        last, around = steps[-1], (*nest, *steps)
        accesses = list(accesses_in(last.body, self.bodies, self.reads, iterator_ranges(around)))
        for tensor, layout in self.large.items():
            own = [access for access in accesses if access.tensor == tensor]
            box = box_of(own, {loop.iterator for loop in around}, layout.shape) if own else None
            if box is None:
                continue
            place = offset_form((side.first for side in box), layout, ())
            step = (place.slope(last.iterator) or 0) * last.step
            found = tuple(rows_of(tensor, layout, box, (), use=Use.SOON, ahead=LinearForm(_AHEAD * step)))
            if step and sum(own.lines for own in found) <= _MOST_LINES:
                for prefetch in found:
                    tile = with_prefetch(tile, last, prefetch)
        return tile

    def reads(self, body: StatementBody) -> Iterator[tuple[str, tuple[Expression, ...]]]:
        return ((read.tensor, read.subscripts) for read in reads_in(body.value) if read.tensor in self.large)
