"""How the elements of buffers lie in memory: rows in an order, padded, or in panels."""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from typing import Final

from tc.base.types import ScalarType
from tc.language.program.specialization import Layout, contiguous_strides
from tc.polyhedral.analysis.box import Box
from tc.polyhedral.ir.loops import LINE_BYTES
from tc.polyhedral.ir.panels import Panels
from tc.polyhedral.ir.scop import Rotation

# Rows of a packed operand begin at multiples of so many elements, a line of the cache for float32, but not of four
# times as many, so that they spread over the sets of the cache.
_LINE: Final = 16
# Nor do parts of it that are read side by side begin at multiples of a page, which lie in the same set.
_PAGE: Final = 1024


def ordered_strides(extents: tuple[int, ...], order: Items[int], *, pad: bool) -> tuple[int, ...]:
    """Strides with the dimensions in this order, outermost first; padded rows spread over the sets of the cache."""
    strides = [0] * len(extents)
    step = 1
    for place, dimension in enumerate(reversed(order)):
        strides[dimension] = step
        step *= extents[dimension]
        if pad and place == 0:
            step = -(-step // _LINE) * _LINE
            step += _LINE if step % (4 * _LINE) == 0 else 0
        elif pad and step % _PAGE == 0:
            step += _LINE
    return tuple(strides)


def panel_layout(type: ScalarType, box: Box, order: Items[int], panels: Panels) -> Layout:
    """The array of a buffer in panels: their number and what is inside of them are its first dimensions."""
    extents = list(box.extents)
    extents.append(-(-extents[panels.dimension] // panels.size))
    extents[panels.dimension] = panels.size
    strides = ordered_strides(tuple(extents), order, pad=True)
    moved = (len(box.extents), panels.dimension, *(n for n in range(len(box.extents)) if n != panels.dimension))
    return Layout(type, tuple(extents[n] for n in moved), tuple(strides[n] for n in moved))


def bytes_of(layout: Layout) -> int:
    """The memory that a buffer takes beside others: each begins at a line of its own."""
    return -(-max(layout.span, 1) * layout.type.itemsize // LINE_BYTES) * LINE_BYTES


def padded_layout(
    type: ScalarType, box: Box, order: Items[int], padding: int, rotation: Rotation | None = None
) -> Layout:
    """The dimensions in this order, outermost first, and so many elements added to every row where there are several.

    Slots begin with lines.
    """
    *outer, row = [box.extents[dimension] for dimension in order] or [1]
    stride = row + padding if math.prod(outer) > 1 else row
    found = dict(zip(order, contiguous_strides((*outer, stride)), strict=False))
    layout = Layout(type, box.extents, tuple(found[dimension] for dimension in range(len(box.extents))))
    if rotation is None:
        return layout
    slot = bytes_of(layout) // type.itemsize
    return Layout(type, (rotation.slots, *layout.shape), (slot, *layout.strides))
