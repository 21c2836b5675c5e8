"""The bytes that arrays occupy, and whether arrays overlap."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

import numpy as np

from tc.runtime.frameworks.borrow import borrow_raw
from tc.runtime.views.view import ArrayView

# Of NumPy's exact search; beyond it arrays count as overlapping.
_MAX_WORK: Final = 10_000
# NumPy's annotation names only the two extreme bounds on the work.
_shares_memory: Final[Callable[..., bool]] = np.shares_memory


class Sharing(Enum):
    """How the memory of two arrays relates."""

    DISJOINT = "disjoint"  # no byte in common
    IDENTICAL = "identical"  # the same elements at the same places
    OVERLAPPING = "overlapping"  # anything else, or too hard to tell


def extent(view: ArrayView) -> tuple[int, int]:
    """First byte that ``view`` occupies and the byte after its last one; equal for an empty array."""
    size = view.type.itemsize
    if 0 in view.shape:
        return view.address, view.address
    spans = [stride * (count - 1) * size for count, stride in zip(view.shape, view.strides, strict=True)]
    return view.address + sum(min(span, 0) for span in spans), view.address + sum(max(s, 0) for s in spans) + size


def sharing(left: ArrayView, right: ArrayView) -> Sharing:
    """How the two arrays share memory; exact but for hard cases, which count as overlapping."""
    (left_begin, left_end), (right_begin, right_end) = extent(left), extent(right)
    if left_begin == left_end or right_begin == right_end or left_end <= right_begin or right_end <= left_begin:
        return Sharing.DISJOINT
    same = (left.address, left.shape, left.strides) == (right.address, right.shape, right.strides)
    if same and left.type is right.type and not overlaps_itself(left):
        return Sharing.IDENTICAL
    try:
        shared = _shares_memory(borrow_raw(left), borrow_raw(right), max_work=_MAX_WORK)
    except np.exceptions.TooHardError:
        shared = True
    return Sharing.OVERLAPPING if shared else Sharing.DISJOINT


def overlaps_itself(view: ArrayView) -> bool:
    """Whether two elements may share a place.

    False is certain.  True is exact for every array made by slicing, transposing, reversing or broadcasting a
    contiguous one; other interleavings count as overlapping.
    """
    if 0 in view.shape:
        return False
    steps = sorted((abs(s), n) for n, s in zip(view.shape, view.strides, strict=True) if n > 1)
    reach = 0  # the farthest element that the smaller strides lead to
    for stride, count in steps:
        if stride <= reach:
            return True
        reach += stride * (count - 1)
    return False
