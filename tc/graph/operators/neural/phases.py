"""Transposed convolutions with strides in phases: what lies as far apart as the stride has the same taps.

Element ``stride * i + first`` of the result has the taps ``stride * k + tap`` only, of the windows ``i + shift - k``:
for each ``first`` that is a convolution of stride 1 with a part of the weights (the sub-pixel form: Shi et al., *Is the
deconvolution layer the same as a convolutional layer?*, arXiv 1609.07009).  Each is a sum of its own, whose innermost
loops have no remainders to test and write neighbours; the result is interleaved from them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.graph.operators.neural.windows import Window, Windows, affine, offset

# As many sums at most: each is a nest of loops to compile.
_MOST: Final = 9


@frozen
class Phase:
    """Elements of an axis of the result, from ``first`` on, as far apart as windows are.

    ``count``: the extent of the axis of the result.
    """

    window: Window
    first: int
    count: int

    @property
    def _tap(self) -> int:
        return (self.first + self._before) % self.window.stride

    @property
    def _before(self) -> int:
        assert isinstance(self.window.before, int)
        return self.window.before

    @property
    def taps(self) -> int:
        """How many taps come to each element."""
        return len(range(self._tap, self.window.kernel, self.window.stride))

    @property
    def extent(self) -> int:
        """How many elements there are."""
        return len(range(self.first, self.count, self.window.stride))

    def place(self, number: str) -> str:
        """The subscript of an element."""
        return f"{affine((self.window.stride, number))}{offset(self.first)}"

    def source(self, number: str, tap: str) -> str:
        """The window whose tap comes to an element."""
        step = self.window.dilation if self.window.stride == 1 else 1
        moved = affine((step, tap))
        return f"{number}{offset((self.first + self._before) // self.window.stride)} - {moved}"

    def tap(self, number: str) -> str:
        """The subscript of a tap."""
        return f"{affine((self.window.stride, number))}{offset(self._tap)}"


def phases_of(windows: Windows, counts: Sequence[str]) -> tuple[tuple[Phase, ...], ...] | None:
    """The phases of a result with these extents, as many along each axis as windows are apart.

    ``counts``: as texts.  None where an extent is open or 0, and where phases are no gain: windows with gaps between
    their elements, too many sums, or no strides at all.
    """
    if "0" in counts or not all(map(str.isdecimal, counts)):
        return None
    strides = [window.stride for window in windows.axes]
    gaps = any(window.dilation > 1 and window.kernel > 1 and window.stride > 1 for window in windows.axes)
    if gaps or not 1 < math.prod(strides) <= _MOST:
        return None
    axes = [
        [Phase(window, first, int(count)) for first in range(min(window.stride, int(count)))]
        for window, count in zip(windows.axes, counts, strict=True)
    ]
    return tuple(itertools.product(*axes))


@frozen
class PhasedSum:
    """One phase along every axis: subscripts and clauses of its sum, and of its elements in the result.

    ``positions`` in the image and ``taps`` of the weights have the ``clauses``; ``places`` in the result have the
    ``ranges``.  ``empty``: no tap comes to any element.
    """

    positions: list[str]
    taps: list[str]
    clauses: list[str]
    places: list[str]
    ranges: list[str]
    empty: bool


def phased_sums(windows: Windows, phases: Sequence[Sequence[Phase]]) -> Iterator[PhasedSum]:
    """What stands in the text of each combination of phases."""
    for axes in phases:
        named = list(zip(axes, windows.places, windows.elements, windows.sizes, strict=True))
        ranges = [f"{place} in 0:{phase.extent}" for phase, place, _, _ in named]
        positions = [phase.source(place, element) for phase, place, element, _ in named]
        taps = [f"{element} in 0:{phase.taps}" for phase, _, element, _ in named]
        inside = [f"{position} in 0:{size}" for position, (_, _, _, size) in zip(positions, named, strict=True)]
        yield PhasedSum(
            positions,
            [phase.tap(element) for phase, _, element, _ in named],
            [*ranges, *taps, *inside],
            [phase.place(place) for phase, place, _, _ in named],
            ranges,
            any(phase.taps == 0 for phase in axes),
        )
