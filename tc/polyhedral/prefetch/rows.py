"""Prefetches of boxes of elements, a row of lines at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import reduce

from tc.language.program.specialization import Layout, Sizes
from tc.polyhedral.analysis.access_boxes import Access, Side
from tc.polyhedral.analysis.offsets import LinearForm, index_form, subscript_form
from tc.polyhedral.analysis.strides import moved, offset_form
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.ir.loops import LINE_BYTES, IndexExpression, Loop, Prefetch, Use
from tc.polyhedral.prefetch.register_tiles import MOST_LINES


def place_of(access: Access, layout: Layout, sizes: Sizes) -> LinearForm:
    """The offset of what is accessed, in elements; 0, which nothing moves, where it is not affine."""
    forms = [subscript_form(subscript, access.arguments) for subscript in access.subscripts]
    known = [form for form in forms if form is not None]
    return offset_form(known, layout, sizes) if len(known) == len(forms) else LinearForm()


def lines_ahead(
    tensor: str, place: IndexExpression, lanes: Loop, count: int, itemsize: int, ahead: int, use: Use = Use.LATER
) -> Prefetch:
    """The prefetch for what ``count`` lanes from the first one on access along memory, so many bytes ahead of that.

    ``place``: the offset of what one lane accesses, in elements of ``itemsize`` bytes.
    """
    first = index_form(substituted(place, {lanes.iterator: lanes.lower}))
    offset = first.plus(LinearForm(ahead // itemsize))
    return Prefetch(tensor, offset.expression(), -(-count * itemsize // LINE_BYTES), use)


def rows_of(
    tensor: str, layout: Layout, box: Sequence[Side], sizes: Sizes, *, use: Use, ahead: LinearForm | None = None
) -> Iterator[Prefetch]:
    """A prefetch for each contiguous row of a box; none where rows are shorter than a line, or too many.

    ``use``: what they are for.  ``ahead``: how many elements before they are needed.
    """
    first = offset_form((side.first.plus(LinearForm(side.least)) for side in box), layout, sizes)
    first = first if ahead is None else first.plus(ahead)
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
        yield Prefetch(tensor, place.expression(), lines, use)
