"""Windows, as those of convolutions: which iterators move them, and the lines of the cache in one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from tc.language.program.affine_form import affine_form
from tc.language.program.program import Expression, IteratorReference, Read, iterators_in


def in_windows(read: Read, reduced: frozenset[str]) -> frozenset[str]:
    """The iterators that are in a subscript of a read together with one of the reduction."""
    found = (frozenset(iterators_in((subscript,))) for subscript in read.subscripts)
    return frozenset[str]().union(*(own for own in found if own & reduced)) - reduced


def skipping(subscripts: Iterable[Expression]) -> Iterator[str]:
    """The iterators that have another factor than 1 or -1 in a subscript."""
    for subscript in subscripts:
        for term, factor in affine_form(subscript).factors.items():
            if isinstance(term, IteratorReference) and abs(factor) > 1:
                yield term.name


def window_lines(reduced: Sequence[tuple[int, int]], tile: Sequence[tuple[int, int]], line: int) -> float:
    """The lines of one window, for each of its steps; 0 where a reduction has no loops but one.

    Loops are given by how far one iteration moves, in elements, and how many there are: those of a reduction, of which
    the one that moves farthest goes from window to window, and those of a tile.  ``line``: elements of a line.
    """
    *inside, _ = sorted(reduced)
    if not inside:
        return 0.0
    moved = [own for own in (*inside, *tile) if own[0] > 0 and own[1] > 1]
    along = sum((count - 1) * step for step, count in moved if step < line) / line + 1
    across = math.prod(count for _, count in _spans(own for own in moved if own[0] >= line))
    return along * across / math.prod(count for _, count in inside)


def _spans(moved: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Distances between neighbours, and counts of them, where loops that move by multiples of one distance overlap."""
    spans: list[tuple[int, int]] = []
    for step, count in sorted(moved):
        if spans and step % spans[-1][0] == 0 and step <= math.prod(spans[-1]):
            least, before = spans[-1]
            spans[-1] = (least, before + (count - 1) * step // least)
        else:
            spans.append((step, count))
    return spans
