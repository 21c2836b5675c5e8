"""Pooling of regions of images (N, C, H, W), whose corners are data."""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.neural.rounding import real_type
from tc.graph.operators.texts import definition, literal, parameter


def pooled_regions(builder: Builder, x: Value, regions: Value, shape: Sequence[int], scale: float) -> Value:
    """The greatest elements of ``shape`` parts of each region (image, x, y, x, y), which ends with its last element."""
    wide = real_type(x.type)
    statements = ["I(r) = int32(region(r, 0))"]
    ranges = []
    for size, place, count, column in (("H", "h", shape[0], 2), ("W", "w", shape[1], 1)):
        begin, end = (f"int32(round({wide}(region(r, {at})) * {literal(scale, wide)}))" for at in (column, column + 2))
        first, last = f"floor({wide}({place}) * P{size}(r))", f"ceil({wide}({place} + 1) * P{size}(r))"
        statements += [
            f"B{size}(r) = {begin}",
            f"P{size}(r) = {wide}(max({end} - B{size}(r) + 1, 1)) / {count}",
            f"F{size}(r, {place}) = min(max(int32({first}) + B{size}(r), 0), {size}) where {place} in 0:{count}",
            f"L{size}(r, {place}) = min(max(int32({last}) + B{size}(r), 0), {size}) where {place} in 0:{count}",
        ]
        ranges.append(f"i{place} in F{size}(r, {place}):L{size}(r, {place})")
    statements += [
        f"M(r, c, h, w) max=! X(I(r), c, ih, iw) where {', '.join(ranges)}",
        f"Y(r, c, h, w) = {x.type}(FH(r, h) < LH(r, h) && FW(r, w) < LW(r, w) ? M(r, c, h, w) : 0)",
    ]
    parameters = [parameter(x.type, ["N", "C", "H", "W"], "X"), parameter(regions.type, ["R", 5], "region")]
    return builder.call(definition("max_roi_pool", parameters, ["Y"], statements), x, regions)[0]


@frozen
class Alignment:
    """How regions are sampled: ``counts`` of results by axes, each of ``samples`` positions; 0: one for each element.

    ``scale``: of corners.  ``centred``: the middle of the first element is at 0.5.  ``greatest``: not their mean, but
    the greatest product of an element near a position with its weight.
    """

    counts: tuple[int, int]
    samples: int
    scale: float
    centred: bool
    greatest: bool


def aligned_regions(builder: Builder, x: Value, regions: Value, images: Value, how: Alignment) -> Value:
    """What is interpolated between elements at positions spread over each region (x, y, x, y)."""
    wide = real_type(x.type)
    axes = [
        _Axis("H", "h", how.counts[0], 1, how, wide),
        _Axis("W", "w", how.counts[1], 0, how, wide),
    ]
    statements = [line for axis in axes for line in axis.tables()]
    corners = [
        f"{axes[0].weight(a)} * {axes[1].weight(b)} * X(images(r), c, {axes[0].index(a)}, {axes[1].index(b)})"
        for a in (0, 1)
        for b in (0, 1)
    ]
    if how.greatest:
        value = f"max(max({corners[0]}, {corners[1]}), max({corners[2]}, {corners[3]}))"
    else:
        value = " + ".join(corners)
    value = " && ".join(f"{axis.index(0)} >= 0" for axis in axes) + f" ? {value} : 0"
    operator = "max=!" if how.greatest else "+=!"
    ranges = ", ".join(f"k{axis.place} in 0:{axis.iterated}" for axis in axes)
    statements.append(f"S(r, c, h, w) {operator} {value} where {ranges}")
    statements.append(f"Y(r, c, h, w) = {x.type}({_result(axes, how)})")
    parameters = [
        parameter(x.type, ["N", "C", "H", "W"], "X"),
        parameter(regions.type, ["R", 4], "region"),
        parameter(images.type, ["R"], "images"),
    ]
    return builder.call(definition("roi_align", parameters, ["Y"], statements), x, regions, images)[0]


def _result(axes: Sequence[_Axis], how: Alignment) -> str:
    """What becomes of the sum or of the greatest of the samples."""
    if how.samples:
        return "S(r, c, h, w)" if how.greatest else f"S(r, c, h, w) / {how.samples**2}"
    if not how.greatest:
        return f"S(r, c, h, w) / {axes[0].type}(max(GH(r) * GW(r), 1))"
    # Samples that are left out are 0, as those outside of the image are.
    return "GH(r) == 0 || GW(r) == 0 ? 0 : NH(r, h) < GH(r) || NW(r, w) < GW(r) ? max(S(r, c, h, w), 0) : S(r, c, h, w)"


@frozen
class _Axis:
    """One axis of regions: its size, the iterator over results, their number, and the column of the first corner."""

    size: str
    place: str
    count: int
    column: int
    how: Alignment
    type: ScalarType

    @property
    def iterated(self) -> str:
        """How many samples of a result are visited."""
        return str(self.how.samples) if self.how.samples else f"N{self.size}(r, {self.place})"

    def index(self, side: int) -> str:
        """The element before a sample, or behind; -1 for samples that are outside."""
        return f"{'IJ'[side]}{self.size}(k{self.place}, r, {self.place})"

    def weight(self, side: int) -> str:
        """Its weight."""
        behind = f"W{self.size}(k{self.place}, r, {self.place})"
        return behind if side else f"(1 - {behind})"

    def tables(self) -> list[str]:
        """The statements that make the tables of samples."""
        s, p, k = self.size, self.place, f"k{self.place}"
        shift = " - 0.5" if self.how.centred else ""
        begin, end = (
            f"{self.type}(region(r, {at})) * {literal(self.how.scale, self.type)}{shift}"
            for at in (self.column, self.column + 2)
        )
        extent = f"{end} - B{s}(r)"
        made = [
            f"B{s}(r) = {begin}",
            f"P{s}(r) = ({extent if self.how.centred else f'max({extent}, 1)'}) / {self.count}",
        ]
        results, samples = f"{p} in 0:{self.count}", f"{k} in 0:{self.how.samples or f'2 * {s} + 6'}"
        if self.how.samples:
            number, sample = str(self.how.samples), k
        else:
            # Samples are more than half an element apart, so that no more than `2 * H + 4` are on the image.
            first = f"(-1 - B{s}(r) - {p} * P{s}(r)) * G{s}(r) / P{s}(r) - 2"
            made += [
                f"G{s}(r) = max(int32(ceil(P{s}(r))), 0)",
                f"F{s}(r, {p}) = min(int32(max(floor({first}), 0)), G{s}(r)) where {results}",
                f"N{s}(r, {p}) = min(G{s}(r) - F{s}(r, {p}), 2 * {s} + 6)",
            ]
            number, sample = f"G{s}(r)", f"F{s}(r, {p}) + {k}"
        at = f"{k}, r, {p}"
        position = f"B{s}(r) + {p} * P{s}(r) + ({sample} + {self.type}(0.5)) * P{s}(r) / {number}"
        inside = f"A{s}({at}) >= -1 && A{s}({at}) <= {s}"
        last = f"min(int32(max(A{s}({at}), 0)), {s} - 1)"
        return [
            *made,
            f"A{s}({at}) = {position} where {results}, {samples}",
            f"I{s}({at}) = {inside} ? {last} : -1",
            f"J{s}({at}) = min(max(I{s}({at}), 0) + 1, {s} - 1)",
            f"W{s}({at}) = I{s}({at}) == {s} - 1 ? 0 : max(A{s}({at}), 0) - I{s}({at})",
        ]
