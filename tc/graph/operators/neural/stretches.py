"""How one axis is resized: texts of tables, which say where elements of the result lie, and what they are made of.

Positions are computed in float64, so that none is off by an element.
"""

from __future__ import annotations

import math
from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.sizes import Dimension
from tc.graph.operators.neural.windows import offset, where
from tc.graph.operators.texts import access, literal

ROUNDED: Final = {
    "floor": "floor({p})",
    "ceil": "ceil({p})",
    "round_prefer_floor": "ceil({p} - 0.5)",
    "round_prefer_ceil": "floor({p} + 0.5)",
}
# So many products are added in one expression; more by a reduction.
_MOST_WRITTEN_OUT: Final = 4
POSITIONS: Final = (
    "align_corners",
    "asymmetric",
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)


@frozen
class Stretch:
    """Along ``axis``, ``count`` elements are made, as if it became ``scale`` times as long; None: as it does.

    ``region``: where in a tensor it is said from which fraction of the axis to which it is resized.
    """

    axis: int
    count: Dimension
    scale: float | None = None
    region: tuple[int, int] | None = None


@frozen
class Interpolation:
    """``mode``: nearest, linear or cubic; ``positions``: how elements lie over those before, as ONNX calls it.

    ``rounding``: to the nearest element: floor, ceil, round_prefer_floor or round_prefer_ceil.  ``coefficient``: of
    cubic weights.  ``inside``: what is outside has no weight; otherwise it is the element at the border.  ``smooth``:
    where there are fewer elements than before, which a scale says then, all of those have weights.  ``beyond``: the
    value outside of a region.
    """

    mode: str
    positions: str
    rounding: str = "round_prefer_floor"
    coefficient: float = -0.75
    inside: bool = False
    smooth: bool = False
    beyond: float = 0.0


@frozen
class Axis:
    """One axis: the names of its size and its iterator, and its extents before and, as a text, afterwards."""

    size: str
    place: str
    extent: Dimension
    count: str
    stretch: Stretch
    how: Interpolation
    weights: ScalarType

    @property
    def shrinks(self) -> bool:
        """Whether it is known to have fewer elements than before."""
        count = self.stretch.count
        return isinstance(self.extent, int) and isinstance(count, int) and count < self.extent

    @property
    def repeats(self) -> int | None:
        """How often each element comes, if all come as often, one after the other."""
        how, scale, count = self.how, self.stretch.scale, self.stretch.count
        plain = (how.positions, how.rounding) == ("asymmetric", "floor")
        centred = how.positions == "half_pixel" and how.rounding.startswith("round")
        if how.mode != "nearest" or not (plain or centred):
            return None
        if scale is None and isinstance(self.extent, int) and isinstance(count, int) and self.extent:
            scale = count / self.extent
        if scale is None or scale < 1 or scale != int(scale) or count != self.extent * int(scale):
            return None
        return int(scale)

    @property
    def within(self) -> str:
        """Whether a position is on the axis."""
        p = f"P{self.size}({self.place})"
        return f"{p} >= 0 && {p} <= {self.size} - 1"

    def tables(self) -> list[str]:
        """Statements that make the tables."""
        if self.repeats is not None:
            return []
        s, h = self.size, self.place
        p = f"P{s}({h})"
        made = [f"{p} = {self._position()} where {h} in 0:{self.count}"]
        if self.how.mode == "nearest":
            return [*made, f"I{s}({h}) = min(max(int32({ROUNDED[self.how.rounding].format(p=p)}), 0), {s} - 1)"]
        first, taps, squeeze = self._reach()
        at, ranges = f"int32(floor({p})) + k{offset(first)}", f"k in 0:{taps}"
        factor = weight(self.how.mode, self.how.coefficient)
        if self.how.inside:
            factor = f"{at} >= 0 && {at} < {s} ? {factor} : 0"
        clauses = where([ranges, f"away = abs({at} - {p}){squeeze}"])
        made.append(f"I{s}(k, {h}) = min(max({at}, 0), {s} - 1) where {ranges}")
        if not (self.how.inside or squeeze):  # their sum is 1
            return [*made, f"W{s}(k, {h}) = {self.weights}({factor}){clauses}"]
        return [
            *made,
            f"G{s}(k, {h}) = {factor}{clauses}",
            f"Z{s}({h}) +=! G{s}(k, {h})",
            f"W{s}(k, {h}) = {self.weights}(G{s}(k, {h}) / Z{s}({h}))",
        ]

    def combined(self, read: str, names: list[str]) -> tuple[str, bool]:
        """Elements of ``read`` times their weights; and whether this is a term that is summed over ``k``."""
        _, taps, _ = self._reach()
        at = self.stretch.axis

        def product(k: object) -> str:
            subscripts = [*names[:at], f"I{self.size}({k}, {self.place})", *names[at + 1 :]]
            return f"W{self.size}({k}, {self.place}) * {access(read, subscripts)}"

        return (product("k"), True) if taps > _MOST_WRITTEN_OUT else (" + ".join(map(product, range(taps))), False)

    def _reach(self) -> tuple[int, int, str]:
        """The first element that counts, after that at or before a position; how many do; how distances shrink."""
        half = 1 if self.how.mode == "linear" else 2
        scale = self.stretch.scale
        if not self.how.smooth or scale is None or scale >= 1:
            return 1 - half, 2 * half, ""
        first = math.floor(-half / scale) + 1
        return first, 2 - 2 * first, f" * {scale!r}"

    def _position(self) -> str:
        """Where an element of the result lies on the axis."""
        n, m, i, s = self.size, self.count, f"float64({self.place})", self._scale
        mode = self.how.positions
        if mode == "asymmetric":
            return f"{i} / {s}"
        if mode == "tf_half_pixel_for_nn":
            return f"({i} + 0.5) / {s}"
        centred = f"({i} + 0.5) / {s} - 0.5"
        if mode == "half_pixel" or (mode == "half_pixel_symmetric" and self.stretch.scale is None):
            return centred
        if mode == "half_pixel_symmetric":  # the centres of both are at one place
            return f"{n} / 2.0 * (1 - {m} / ({s} * {n})) + {centred}"
        if mode == "pytorch_half_pixel":
            return f"{m} > 1 ? {centred} : 0"
        last = f"({m} - 1)" if self.stretch.scale is None else f"({s} * {n} - 1)"
        if mode == "align_corners":
            return f"{m} > 1 ? {i} * ({n} - 1) / {last} : 0"
        assert self.stretch.region is not None
        a, b = (f"float64(region({place}))" for place in self.stretch.region)
        return f"{m} > 1 ? ({a} + {i} * ({b} - {a}) / {last}) * ({n} - 1) : 0.5 * ({a} + {b}) * ({n} - 1)"

    @property
    def _scale(self) -> str:
        """How many times as long the axis becomes."""
        if self.stretch.scale is None:
            return f"(float64({self.count}) / {self.size})"
        return literal(self.stretch.scale, ScalarType.FLOAT64)


def weight(mode: str, coefficient: float = -0.75) -> str:
    """The weight of an element that is so far ``away``, in linear or cubic interpolation."""
    if mode == "linear":
        return "max(1 - away, 0)"
    a = coefficient
    near = f"({a + 2!r} * away - {a + 3!r}) * away * away + 1"
    far = f"(({a!r} * away - {5 * a!r}) * away + {8 * a!r}) * away - {4 * a!r}"
    return f"(away <= 1 ? {near} : away < 2 ? {far} : 0)"
