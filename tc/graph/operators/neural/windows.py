"""Windows that move over the spatial axes of a tensor (N, C, ...), as pieces of texts.

Spatial sizes are called ``H`` and ``W`` in texts, or alike for other ranks; iterators over windows ``h`` and ``w``,
those in a window ``kh`` and ``kw``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.sizes import Dimension
from tc.graph.operators.neural.rounding import real_type
from tc.graph.operators.texts import access, iterators

_NAMES: Final = {1: ("L",), 2: ("H", "W"), 3: ("D", "H", "W")}


@frozen
class Window:
    """A window along one axis: element ``k`` of window ``i`` is ``stride * i + dilation * k - before``.

    ``before`` and ``after``: how many elements of padding there are; ``before`` may be a text in which the size occurs.
    ``beyond``: the last window may reach further than the padding.  ``count``: how many windows there are, as a text.
    """

    kernel: int
    stride: int
    dilation: int
    before: int | str
    after: int
    beyond: bool
    count: str

    @property
    def padded(self) -> bool:
        """Whether windows may leave the axis."""
        return self.before != 0 or self.after != 0 or self.beyond

    def position(self, window: str, element: str) -> str:
        """The subscript of an element of a window, as in ``2 * h + kh - 1``."""
        moved = affine((self.stride, window), (self.dilation, element))
        return f"{moved}{offset(-self.before)}" if isinstance(self.before, int) else f"{moved} - {self.before}"

    def source(self, place: str, element: str, size: str) -> tuple[str, list[str]]:
        """The window whose element comes to a place, and the conditions under which there is one."""
        assert isinstance(self.before, int)
        moved = f"{place}{offset(self.before)} - {affine((self.dilation, element))}"
        if self.stride == 1:
            return moved, [f"{moved} in 0:{size}"]
        reach = f"{self.stride} * {size}{offset(1 - self.stride)}"
        return divided(moved, self.stride), [f"({moved}) % {self.stride} == 0", f"{moved} in 0:{reach}"]


def span(kernel: int, dilation: int) -> int:
    """How many elements a window reaches over."""
    return (kernel - 1) * dilation + 1


def explicit_window(
    size: str, kernel: int, stride: int = 1, dilation: int = 1, before: int = 0, after: int = 0, *, up: bool = False
) -> Window:
    """A window over an axis whose size is called so.

    ``up``: there is one more where the last does not end with the padding, if it begins ahead of what follows the axis.
    """
    rest = after + stride - span(kernel, dilation)
    slack = before + (min(rest, 0) + stride - 1 if up else rest)
    count = divided(f"{size}{offset(slack)}", stride)
    return Window(kernel, stride, dilation, before, after, up and stride > 1, count)


def same_window(size: str, extent: Dimension, kernel: int, stride: int, dilation: int, *, lower: bool) -> Window | None:
    """A window at every ``stride``-th element, with as little padding as that needs.

    ``lower``: an odd element of padding is before, not after.  None where the extent is open and no text says how much
    padding there is.
    """
    reach = span(kernel, dilation)
    count = divided(f"{size}{offset(stride - 1)}", stride)
    if isinstance(extent, int):
        padding = max((-(-extent // stride) - 1) * stride + reach - extent, 0)
    elif stride == 1:
        padding = reach - 1
    elif reach < stride:
        return None
    else:  # how much there is depends on what remains of the extent
        total = f"{count} * {stride} - {size}{offset(reach - stride + lower)}"
        return Window(kernel, stride, dilation, f"({total}) / 2", reach, False, count)
    before = (padding + lower) // 2
    return Window(kernel, stride, dilation, before, padding - before, False, count)


def affine(*terms: tuple[int, str]) -> str:
    """A sum of multiples, as in ``2 * h + kh``."""
    return " + ".join(name if factor == 1 else f"{factor} * {name}" for factor, name in terms)


def offset(number: int) -> str:
    """As in `` + 1`` or `` - 1``; nothing for 0."""
    return f" + {number}" if number > 0 else f" - {-number}" if number else ""


def divided(text: str, divisor: int) -> str:
    """As in ``(H + 1) / 2``."""
    if divisor == 1:
        return text
    return f"({text}) / {divisor}" if " " in text else f"{text} / {divisor}"


def where(clauses: Sequence[str]) -> str:
    """The clauses with ``where`` before them, if there are any."""
    return f" where {', '.join(clauses)}" if clauses else ""


def summed(type: ScalarType, at: Sequence[str], term: str, clauses: Sequence[str]) -> list[str]:
    """``Y`` of a type, sums of terms of its real type; those of halves are rounded once, behind the sum."""
    if real_type(type) is type:
        return [f"{access('Y', at)} +=! {term}{where(clauses)}"]
    return [f"{access('S', at)} +=! {term}{where(clauses)}", f"{access('Y', at)} = {type}({access('S', at)})"]


def spatial_sizes(rank: int) -> tuple[str, ...]:
    """What the sizes of spatial axes are called."""
    return _NAMES.get(rank) or tuple(iterators(rank, "D"))


def _times(window: Window) -> str | None:
    """The extent of as many blocks as there are windows; None where that is no number."""
    return str(int(window.count) * window.stride) if window.count.isdecimal() else None


@frozen
class Windows:
    """A window along every spatial axis."""

    axes: tuple[Window, ...]

    @property
    def sizes(self) -> tuple[str, ...]:
        """The extents of what the windows move over."""
        return spatial_sizes(len(self.axes))

    @property
    def places(self) -> list[str]:
        """Iterators over windows."""
        return [size.lower() for size in self.sizes]

    @property
    def elements(self) -> list[str]:
        """Iterators in a window."""
        return [f"k{place}" for place in self.places]

    @property
    def kernel(self) -> list[int]:
        """The extents of a window."""
        return [window.kernel for window in self.axes]

    @property
    def positions(self) -> list[str]:
        """Subscripts of the elements of windows."""
        triples = zip(self.axes, self.places, self.elements, strict=True)
        return [window.position(place, element) for window, place, element in triples]

    def are_blocks(self, counts: Sequence[str | int]) -> bool:
        """Whether windows divide axes with these extents into blocks, so that each element is in one of them.

        ``counts``: numbers, or texts of the sizes that the windows are counted by.
        """
        own = [
            window.kernel == window.stride
            and (window.dilation == 1 or window.kernel == 1)
            and window.before == 0
            and count in (f"{window.stride} * {size}", size if window.stride == 1 else None, _times(window))
            for window, size, count in zip(self.axes, self.sizes, map(str, counts), strict=True)
        ]
        return all(own) and any(window.stride > 1 for window in self.axes)

    def clauses(self, *, kernel: bool = False) -> list[str]:
        """The clauses that ranges need; ``kernel``: those of the iterators in a window, too."""
        inside = zip(self.axes, self.positions, self.sizes, strict=True)
        return [
            *(
                f"{place} in 0:{window.count}"
                for window, place in zip(self.axes, self.places, strict=True)
                if window.padded
            ),
            *(f"{k} in 0:{extent}" for k, extent in zip(self.elements, self.kernel, strict=True) if kernel),
            *(f"{position} in 0:{size}" for window, position, size in inside if window.padded),
        ]

    def sources(self) -> tuple[list[str], list[str]]:
        """For places that windows come to, the subscripts of those that do, and the conditions under which they do."""
        found, clauses = [], []
        for window, place, element, size in zip(self.axes, self.places, self.elements, self.sizes, strict=True):
            source, conditions = window.source(place, element, size)
            found.append(source)
            clauses += conditions
        return found, clauses
