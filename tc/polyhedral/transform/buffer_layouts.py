"""How the elements of buffers lie in memory: rows in an order, padded, or in panels."""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from enum import Enum
from typing import Final

from tc.base.types import ScalarType
from tc.language.program.specialization import Layout, contiguous_strides
from tc.polyhedral.analysis.box import Box
from tc.polyhedral.ir.loops import LINE_BYTES
from tc.polyhedral.ir.panels import Panels
from tc.polyhedral.ir.scop import Rotation

# Rows of a packed operand begin at multiples of so many elements, a line of the cache for float32.
_LINE: Final = 16
# But not at multiples of the longest rows that one register tile reads: parts of longer ones spread over the sets of
# the cache.
_TILE: Final = 64
# Nor do parts of it that are read side by side begin at multiples of a page, which lie in the same set.
_PAGE: Final = 1024


# What a thread reads from shared memory at once, at most.
VECTOR_BYTES: Final = 16


class Padding(Enum):
    """Elements that are added to rows where no number of them is given."""

    CACHES = "caches"  # rows of what is only read spread over the sets of a processor's cache
    BANKS = "banks"  # neighbours along every dimension lie in different banks of shared memory


def ordered_strides(extents: tuple[int, ...], order: Items[int], *, pad: bool) -> tuple[int, ...]:
    """Strides with the dimensions in this order, outermost first; padded rows spread over the sets of the cache."""
    strides = [0] * len(extents)
    step = 1
    for place, dimension in enumerate(reversed(order)):
        strides[dimension] = step
        step *= extents[dimension]
        if pad and place == 0:
            step = -(-step // _LINE) * _LINE
            step += _LINE if step > _TILE and step % _TILE == 0 else 0
        elif pad and step % _PAGE == 0:
            step += _LINE
    return tuple(strides)


def tile_strides(extents: tuple[int, ...], order: Items[int]) -> tuple[int, ...]:
    """Strides of a register tile: rows have room for whole vectors, the last of which has lanes that are not in use."""
    *outer, row = order
    full, rest = divmod(extents[row], _LINE)
    rows = {**dict(enumerate(extents)), row: full * _LINE + (1 << (rest - 1).bit_length() if rest else 0)}
    return ordered_strides(tuple(rows[n] for n in range(len(extents))), (*outer, row), pad=False)


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
    type: ScalarType, box: Box, order: Items[int], padding: int | None, rotation: Rotation | None = None
) -> Layout:
    """The dimensions in this order, outermost first, and so many elements added to every row where there are several.

    None adds what ``Padding.BANKS`` says.  Slots begin with lines.
    """
    extents = [box.extents[dimension] for dimension in order]
    *outer, row = extents or [1]
    if padding is None:
        strides = _banked_strides(extents, type)
    else:
        strides = contiguous_strides((*outer, row + padding if math.prod(outer) > 1 else row))
    found = dict(zip(order, strides, strict=False))
    layout = Layout(type, box.extents, tuple(found[dimension] for dimension in range(len(box.extents))))
    if rotation is None:
        return layout
    slot = bytes_of(layout) // type.itemsize
    return Layout(type, (rotation.slots, *layout.shape), (slot, *layout.strides))


def _banked_strides(extents: Items[int], type: ScalarType) -> tuple[int, ...]:
    """An odd number of vectors along every dimension: threads that read neighbours read from different banks.

    Vectors are the largest of which a row has a whole number.
    """
    row = extents[-1] if extents else 1
    vector = math.gcd(row, VECTOR_BYTES // type.itemsize)
    strides, step = [0] * len(extents), 1
    for dimension in reversed(range(len(extents))):
        strides[dimension] = step
        step *= extents[dimension]
        if math.prod(extents[:dimension]) > 1 and step // vector % 2 == 0:
            step += vector
    return tuple(strides)
