"""Software prefetching: while a loop works on one block of an argument, the block of its next iteration is prefetched.

Hardware prefetchers follow a stream, but not from the end of one block to the beginning of the next, and not well along
many streams at once.  Where a nest around register tiles goes from block to block of an argument, each read in one
iteration only, the next block is prefetched (Mowry, Lam and Gupta, "Design and evaluation of a compiler
algorithm for prefetching", ASPLOS 1992: only what is not there yet, and one iteration ahead).  A core has few
outstanding misses: every tile prefetches some lines, one by one while it computes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.language.program.program import Expression, reads_in
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.access_boxes import Side, accesses_in, box_of, iterator_ranges, trips
from tc.polyhedral.analysis.offsets import LinearForm, index_form
from tc.polyhedral.ir.loops import (
    LINE_BYTES,
    Buffer,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopTree,
    Prefetch,
    StatementBody,
    variables,
)
from tc.polyhedral.prefetch.register_tiles import (
    MOST_LINES,
    change_tiles,
    is_large,
    prefetches,
    reductions,
    with_prefetch,
    with_prefetches,
)

# A loop of a tile with more iterations than there are lines prefetches one in each, if they are not many more.
_MOST_SURPLUS: Final = 1.5


def prefetch_blocks(
    root: LoopTree, buffers: Iterable[Buffer], bodies: Mapping[str, StatementBody], most_bytes: int
) -> LoopTree:
    """The loops, of which those around register tiles prefetch blocks of at most so many bytes; 0: none do."""
    large = {b.name: b.layout for b in buffers if not b.writable and is_large(b.layout)}
    if most_bytes == 0 or not large:
        return root
    return change_tiles(root, _Walk(large, bodies, most_bytes).prefetching)


@frozen
class _Footprint:
    """What one iteration of a loop reads of an argument: ``span`` elements from the element ``first`` on."""

    first: LinearForm
    span: int


@frozen
class _Walk:
    large: Mapping[str, Layout]
    bodies: Mapping[str, StatementBody]
    most_bytes: int

    def prefetching(self, nest: tuple[Loop, ...]) -> Loop:
        """The innermost loop of a nest, which holds a register tile, with its prefetches.

        Blocks are those of the innermost loop around it whose blocks are read in one iteration only.
        """
        for depth in range(len(nest) - 2, -1, -1):
            outer, inner = nest[: depth + 1], nest[depth + 1 :]
            if not all(trips(loop) for loop in inner):
                break
            blocks = self.blocks(outer)
            if blocks:
                return self.with_shares(outer[-1], inner, blocks)
        return nest[-1]

    def blocks(self, outer: tuple[Loop, ...]) -> Mapping[str, _Footprint]:
        """What one iteration of the last of these loops reads, and no other iteration does, of every argument."""
        accesses = list(accesses_in(outer[-1].body, self.bodies, self.reads, iterator_ranges(outer)))
        moving = {loop.iterator for loop in outer}
        found: dict[str, _Footprint] = {}
        for tensor, layout in self.large.items():
            box = box_of([access for access in accesses if access.tensor == tensor], moving, layout.shape)
            footprint = None if box is None else _footprint(box, outer, layout)
            if footprint is not None and footprint.span * layout.type.itemsize <= self.most_bytes:
                found[tensor] = footprint
        return found

    def reads(self, body: StatementBody) -> Iterator[tuple[str, tuple[Expression, ...]]]:
        return ((read.tensor, read.subscripts) for read in reads_in(body.value) if read.tensor in self.large)

    def with_shares(self, last: Loop, inner: tuple[Loop, ...], blocks: Mapping[str, _Footprint]) -> Loop:
        """The innermost loop, with its share of prefetches for ``last``; unchanged where they are too many."""
        tile = inner[-1]
        for tensor, block in blocks.items():
            tile = _with_share(tile, _share(tensor, self.large[tensor], block, last, inner), self.large[tensor])
        most = max(sum(own.lines for own in prefetches(loop)) for loop in (tile, *reductions(tile.body)))
        return tile if most <= MOST_LINES else inner[-1]


def _footprint(box: Sequence[Side], outer: Sequence[Loop], layout: Layout) -> _Footprint | None:
    """What an iteration of the last of the loops reads, if that is a dense block which no other iteration reads."""
    first, last = LinearForm(), 0
    for side, stride in zip(box, layout.strides, strict=True):
        first = first.plus(side.first, stride).plus(LinearForm(side.least), stride)
        last += (side.most - side.least) * stride
    span = last + 1
    # Where strides depend on open sizes, so does what a block is.
    if not all(isinstance(step, int) for step in layout.steps):
        return None
    dense = min(layout.strides, default=0) >= 0 and 2 * math.prod(side.extent for side in box) >= span
    return _Footprint(first, span) if dense and _is_fresh(first, span, outer) else None


def _is_fresh(first: LinearForm, span: int, outer: Sequence[Loop]) -> bool:
    """Whether the blocks of neighbouring iterations are disjoint, and every other loop moves to other blocks."""
    last = outer[-1]
    if abs(first.slope(last.iterator) or 0) * last.step < span:
        return False
    moved = {last.iterator}
    for loop in reversed(outer):
        if first.slope(loop.iterator) or loop.iterator in moved:
            moved |= {loop.iterator} | variables(loop.lower) | variables(loop.upper)
        elif trips(loop) != 1:
            return False
    return True


def _share(tensor: str, layout: Layout, block: _Footprint, last: Loop, inner: Sequence[Loop]) -> Prefetch:
    """A share of the next block, in proportion to the progress of the inner loops in theirs."""
    steps = math.prod(trips(loop) or 1 for loop in inner)
    lines = -(-block.span * layout.type.itemsize // (LINE_BYTES * steps))
    following = block.first.plus(LinearForm((block.first.slope(last.iterator) or 0) * last.step))
    return Prefetch(tensor, following.plus(_done(inner), lines * _elements(layout)).expression(), lines)


def _with_share(tile: Loop, share: Prefetch, layout: Layout) -> Loop:
    """The loop around a tile with a prefetch, most of it divided among the iterations of a loop inside of the tile."""
    begin, elements = index_form(share.offset), _elements(layout)
    found = with_prefetches(tile, (share,))
    inside: tuple[Loop, ...] = ()
    for loop in reductions(tile.body):
        inside = (*inside, loop)
        times = math.prod(trips(inner) or 0 for inner in inside)
        lines = max(1, share.lines // times) if times else 0
        if not 0 < lines * times <= _MOST_SURPLUS * share.lines:
            break
        each = Prefetch(share.tensor, begin.plus(_done(inside), lines * elements).expression(), lines)
        found = with_prefetch(tile, loop, each)
        if share.lines > lines * times:
            rest = begin.plus(LinearForm(lines * times * elements)).expression()
            found = with_prefetches(found, (Prefetch(share.tensor, rest, share.lines - lines * times),))
    return found


def _elements(layout: Layout) -> int:
    """How many elements a line of the cache holds."""
    return LINE_BYTES // layout.type.itemsize


def _done(nest: Sequence[Loop]) -> LinearForm:
    """How many iterations of a nest came before one of the innermost loop."""
    total, steps = LinearForm(), 1
    for loop in reversed(nest):
        own: IndexExpression = index_form(IndexVariable(loop.iterator)).plus(index_form(loop.lower), -1).expression()
        if loop.step != 1:
            own = IndexOperation(IndexOperator.EXACT_DIVIDE, (own, IndexLiteral(loop.step)))
        total = total.plus(index_form(own), steps)
        steps *= trips(loop) or 1
    return total
