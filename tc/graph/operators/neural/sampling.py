"""Sampling at positions that are data, and what is made of it: grids of positions, deformed convolutions.

For each axis there are tables: of the elements that a position lies between, and of their weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension, elements
from tc.graph.ir.values import Value
from tc.graph.operators.extents import extents_of
from tc.graph.operators.neural.convolution import convolution
from tc.graph.operators.neural.rounding import NEAREST, real_type
from tc.graph.operators.neural.stretches import weight
from tc.graph.operators.neural.windows import Windows, explicit_window, offset, spatial_sizes
from tc.graph.operators.texts import access, definition, parameter

# How many elements a position lies between.
TAPS: Final = {"nearest": 1, "linear": 2, "cubic": 4}
_MOST_WRITTEN_OUT: Final = 16
PADDINGS: Final = ("zeros", "border", "reflection")


@frozen
class Sampling:
    """``mode``: nearest, linear or cubic.  ``padding``: what is outside: zeros, border, edge or reflection.

    By ``border`` positions outside are moved there; by ``edge`` they stay, and the elements there are repeated.

    ``aligned``: axes begin and end in the middle of their first and last elements, and not at their sides.
    """

    mode: str
    padding: str
    aligned: bool


@frozen
class _Axis:
    """An axis whose size is called so, and the iterators over positions."""

    size: str
    at: Sequence[str]
    how: Sampling
    type: ScalarType

    @property
    def k(self) -> str:
        """The iterator over the elements that a position lies between."""
        return f"t{self.size.lower()}"

    def index(self, k: object) -> str:
        """The subscript of element ``k``; -1 outside, where there are zeros."""
        return access(f"I{self.size}", self.at if self.how.mode == "nearest" else [k, *self.at])

    def weighted(self, k: object, value: str) -> str:
        """The value times the weight of element ``k``; 0 outside."""
        if self.how.mode != "nearest":
            value = f"{access(f'W{self.size}', [k, *self.at])} * {value}"
        return f"({self.index(k)} >= 0 ? {value} : 0)" if self.how.padding == "zeros" else value

    def tables(self, position: str) -> list[str]:
        """The statements that make the tables."""
        s, p = self.size, access(f"P{self.size}", self.at)
        if self.how.mode == "nearest":
            made = [f"{p} = {NEAREST} where v = {position}, r = round(v)"]
        else:
            made = [f"{p} = {position}"]
        if self.how.padding not in ("zeros", "edge"):
            moved = access(f"Q{s}", self.at)
            made.append(f"{moved} = {self._moved_inside(p)}")
            p = moved
        if self.how.mode == "nearest":
            return [*made, f"{self.index(self.k)} = {self._element()} where i = int32({p})"]
        taps = TAPS[self.how.mode]
        first, ranges = offset(1 - taps // 2), f"{self.k} in 0:{taps}"
        distance = f"away = abs(floor({p}) + {self.k}{first} - {p})"
        return [
            *made,
            f"{self.index(self.k)} = {self._element()} where {ranges}, i = int32(floor({p})) + {self.k}{first}",
            f"{access(f'W{s}', [self.k, *self.at])} = {self.type}({weight(self.how.mode)}) where {ranges}, {distance}",
        ]

    def _moved_inside(self, p: str) -> str:
        """A position outside, moved to the border or reflected there."""
        s = self.size
        if self.how.padding == "border":
            clamped = f"min(max({p}, 0), {s} - 1)"
            return clamped if self.how.aligned else f"{p} < -0.5 || {p} > {s} - 0.5 ? {clamped} : {p}"
        if self.how.aligned:
            moved = f"{s} == 1 ? 0 : m > {s} - 1 ? 2 * ({s} - 1) - m : m"
            return f"{moved} where m = fmod(abs({p}), {self.type}(2 * ({s} - 1)))"
        return f"(m > {s} ? 2 * {s} - m : m) - 0.5 where m = fmod(abs({p} + 0.5), {self.type}(2 * {s}))"

    def _element(self) -> str:
        """The element in the place of number ``i``, which may be outside."""
        s = self.size
        if self.how.padding == "zeros":
            return f"i >= 0 && i < {s} ? i : -1"
        if self.how.padding in ("border", "edge"):
            return f"min(max(i, 0), {s} - 1)"
        if self.how.aligned:
            m = f"abs(i) % max(2 * {s} - 2, 1)"
            return f"{m} < {s} ? {m} : 2 * {s} - 2 - {m}"
        m = f"(i < 0 ? -1 - i : i) % (2 * {s})"
        return f"{m} < {s} ? {m} : 2 * {s} - 1 - {m}"


def _sampled(axes: Sequence[_Axis], x: str, before: list[str], after: list[str]) -> list[str]:
    """The statements that sum elements of ``x``, behind subscripts ``before``, to ``S``, whose subscripts end so.

    Few products are written out, which is faster than to reduce.
    """
    taps = TAPS[axes[0].how.mode]
    target = access("S", [*before, *after])
    if taps ** len(axes) > _MOST_WRITTEN_OUT:
        value = access(x, [*before, *(axis.index(axis.k) for axis in axes)])
        for axis in reversed(axes):
            value = axis.weighted(axis.k, value)
        return [f"{target} +=! {value}"]

    def along(rest: Sequence[_Axis], found: list[str]) -> str:
        if not rest:
            return access(x, [*before, *found])
        parts = (rest[0].weighted(k, along(rest[1:], [*found, rest[0].index(k)])) for k in range(taps))
        return f"({' + '.join(parts)})" if taps > 1 else next(parts)

    return [f"{target} = {along(axes, [])}"]


def sampled_at(builder: Builder, x: Value, grid: Value, how: Sampling) -> Value:
    """A tensor (N, C, ...) at the positions (N, ..., rank) from -1 to 1, of which the last axis comes first."""
    spatial = spatial_sizes(len(x.shape) - 2)
    at = ["n", *(size.lower() for size in spatial)]
    wide = real_type(grid.type)
    axes = [_Axis(size, at, how, real_type(x.type)) for size in spatial]
    statements = []
    for number, axis in enumerate(axes):
        g = f"{wide}({access('G', [*at, len(axes) - 1 - number])})"
        position = f"({g} + 1) / 2 * ({axis.size} - 1)" if how.aligned else f"(({g} + 1) * {axis.size} - 1) / 2"
        statements += axis.tables(position)
    statements += _sampled(axes, "X", ["n", "c"], at[1:])
    total, target = (access(name, ["n", "c", *at[1:]]) for name in "SY")
    statements.append(f"{target} = {x.type}({total})")
    parameters = [
        parameter(x.type, ["N", "C", *spatial], "X"),
        parameter(grid.type, ["N", *(f"O{size}" for size in spatial), len(spatial)], "G"),
    ]
    return builder.call(definition("grid_sample", parameters, ["Y"], statements), x, grid)[0]


def affine_grid(builder: Builder, matrices: Value, shape: Sequence[Dimension], *, aligned: bool) -> Value:
    """The positions from -1 to 1 of all places of such a shape, each mapped by the matrix (N, rank, rank + 1)."""
    rank = len(shape)
    counts = extents_of(builder, shape)
    places = [size.lower() for size in spatial_sizes(rank)]
    wide = real_type(matrices.type)
    statements, terms = [], [f"T(n, i, {rank})"]
    for place, count, number in zip(places, counts.texts, reversed(range(rank)), strict=True):
        at = f"{wide}({place})"
        position = f"{count} > 1 ? 2 * {at} / ({count} - 1) - 1 : 0" if aligned else f"(2 * {at} + 1) / {count} - 1"
        statements.append(f"P{place}({place}) = {position} where {place} in 0:{count}")
        terms.insert(0, f"T(n, i, {number}) * P{place}({place})")
    sum_text = f"{matrices.type}({' + '.join(terms)})"
    statements.append(f"{access('Y', ['n', *places, 'i'])} = {sum_text} where i in 0:{rank}")
    parameters = [parameter(matrices.type, ["N", rank, rank + 1], "T"), *counts.parameters]
    return builder.call(definition("affine_grid", parameters, ["Y"], statements), matrices, *counts.operands)[0]


def deformed_convolution(
    builder: Builder,
    x: Value,
    weights: Value,
    moves: Value,
    mask: Value | None,
    bias: Value | None,
    windows: Windows,
    groups: tuple[int, int],
) -> Value:
    """The convolution of elements that data move: ``moves`` (N, groups * kernel * rank, ...), in elements.

    ``mask`` (N, groups * kernel, ...): factors of the elements.  ``groups``: of the convolution, and of what is moved.
    """
    made = moves.shape[2:]
    columns = _columns(builder, x, moves, mask, windows, groups[1])
    rows = x.shape[1] * elements(windows.kernel)
    image = builder.reshape(columns, (x.shape[0], rows, elements(made)))
    kernel = builder.reshape(weights, (weights.shape[0], elements(weights.shape[1:]), 1))
    found = convolution(builder, image, kernel, bias, Windows((explicit_window("L", 1),)), groups[0])
    return builder.reshape(found, (*found.shape[:2], *made))


def _columns(builder: Builder, x: Value, moves: Value, mask: Value | None, windows: Windows, groups: int) -> Value:
    """The elements that come to each place of the kernel (N, groups, C / groups, kernel, ...)."""
    rank, made = len(windows.axes), moves.shape[2:]
    places = [*windows.elements, *windows.places]
    at = ["n", "g", *places]
    wide, how = real_type(x.type), Sampling("linear", "zeros", aligned=True)
    axes = [_Axis(size, at, how, wide) for size in windows.sizes]
    statements = []
    for number, (axis, position) in enumerate(zip(axes, windows.positions, strict=True)):
        moved = access("O", ["n", "g", *windows.elements, number, *windows.places])
        statements += axis.tables(f"{position} + {wide}({moved})")
    statements += _sampled(axes, "X", ["n", "g", "c"], places)
    total, target = (access(name, ["n", "g", "c", *places]) for name in "SY")
    results = [f"O{size}" for size in windows.sizes]
    parameters = [
        parameter(x.type, ["N", "G", "C", *windows.sizes], "X"),
        parameter(moves.type, ["N", "G", *windows.kernel, rank, *results], "O"),
    ]
    operands = [
        builder.reshape(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])),
        builder.reshape(moves, (x.shape[0], groups, *windows.kernel, rank, *made)),
    ]
    if mask is not None:
        parameters.append(parameter(mask.type, ["N", "G", *windows.kernel, *results], "M"))
        operands.append(builder.reshape(mask, (x.shape[0], groups, *windows.kernel, *made)))
        total = f"{total} * {access('M', at)}"
    statements.append(f"{target} = {x.type}({total})")
    return builder.call(definition("deformed", parameters, ["Y"], statements), *operands)[0]
