"""Padding and cropping along any axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension
from tc.graph.ir.values import Value
from tc.graph.operators.extents import extents_of
from tc.graph.operators.texts import access, definition, iterators, literal, parameter, sizes

# The elements ahead of the operand, and those behind it; each place is counted from where its part begins.
_AHEAD: Final = {"edge": "0", "reflect": "{first} - {place}", "wrap": "{place} + {size} - {first}"}
_BEHIND: Final = {"edge": "{size} - 1", "reflect": "{size} - 2 - {place}", "wrap": "{place}"}


def padded(
    builder: Builder,
    x: Value,
    before: Sequence[Dimension],
    after: Sequence[Dimension],
    mode: str = "constant",
    value: Value | None = None,
) -> Value:
    """The tensor with so many more elements before and after each axis; numbers below 0 crop it first.

    ``mode``: ``constant``, which is ``value``, a tensor of one element, or 0; or ``edge``, ``reflect`` or ``wrap``.
    Open sizes are taken not to be negative.
    """
    x = _cropped(builder, x, before, after)
    rank = len(x.shape)
    amounts = [max(amount, 0) if isinstance(amount, int) else amount for amount in (*before, *after)]
    if all(amount == 0 for amount in amounts):
        return x
    more = extents_of(builder, amounts)
    axes = [
        _Axis(name, size, more.texts[axis], more.texts[rank + axis], mode)
        for axis, (name, size) in enumerate(zip(iterators(rank), sizes(rank), strict=True))
    ]
    for axis in range(rank):
        extent = x.shape[axis]
        if isinstance(extent, int) and _is_repeated(extent, (amounts[axis], amounts[rank + axis]), mode):
            axes[axis] = _Axis(axes[axis].name, str(extent), axes[axis].first, axes[axis].last, mode)
    parameters, operands = [parameter(x.type, [axis.size for axis in axes], "A")], [x]
    if mode != "constant":
        statements = _copied(axes)
    else:
        other = literal(0, x.type) if x.type is ScalarType.BOOL else "0"
        if value is not None:
            parameters.append(parameter(value.type, [], "V"))
            operands.append(builder.reshape(value, ()))
            other = "V"
        statements = [_framed(axes, x.type, other)]
    text = definition("pad", [*parameters, *more.parameters], ["Y"], statements)
    return builder.call(text, *operands, *more.operands)[0]


def padded_gradient(builder: Builder, gradient: Value, before: Sequence[int], after: Sequence[int], mode: str) -> Value:
    """The adjoint of ``padded`` by ``edge`` or ``reflect``: each element gets what its repetitions have.

    No element comes more than once on one side by ``reflect``.
    """
    first_less, last_less = ([max(-amount, 0) for amount in amounts] for amounts in (before, after))
    found = padded(builder, gradient, first_less, last_less)  # what was cropped gets nothing
    for axis, (first, last) in enumerate(zip(before, after, strict=True)):
        if first > 0 or last > 0:
            found = _folded(builder, found, axis, max(first, 0), max(last, 0), mode)
    return found


def _folded(builder: Builder, gradient: Value, axis: int, first: int, last: int, mode: str) -> Value:
    """The adjoint along one axis."""
    names = iterators(len(gradient.shape))
    size = f"({sizes(len(names))[axis]} - {first + last})"

    def along(name: str, place: str) -> str:
        return access(name, [place if at == axis else other for at, other in enumerate(names)])

    i = names[axis]
    ahead, behind = (f"{first} - {i}", f"{size} - 2 - {i}") if mode == "reflect" else ("0", f"{size} - 1")
    statements = [f"{along('Y', i)} = {along('G', f'{i} + {first}')} where {i} in 0:{size}"]
    if first:
        statements.append(f"{along('Y', ahead)} += {along('G', i)} where {i} in 0:{first}")
    if last:
        read = along("G", f"{i} + {size} + {first}")
        statements.append(f"{along('Y', behind)} += {read} where {i} in 0:{last}")
    text = definition("pad_gradient", [parameter(gradient.type, sizes(len(names)), "G")], ["Y"], statements)
    return builder.call(text, gradient)[0]


@frozen
class _Axis:
    """One axis: its iterator and its size, and how many elements come before and after it, as texts."""

    name: str
    size: str
    first: str
    last: str
    mode: str

    @property
    def is_padded(self) -> bool:
        """Whether there are more elements."""
        return self.first != "0" or self.last != "0"

    @property
    def extent(self) -> str:
        """How many elements there are afterwards."""
        return _sum(self.size, self.first, self.last)

    def parts(self) -> list[tuple[str, str, str]]:
        """Where each part begins, how many elements it has, and which of the operand is at its place ``{place}``."""
        known = {"first": self.first, "size": self.size, "place": "{place}"}
        found = [] if self.first == "0" else [("0", self.first, _AHEAD[self.mode].format(**known))]
        found.append((self.first, self.size, "{place}"))
        if self.last != "0":
            found.append((_sum(self.size, self.first), self.last, _BEHIND[self.mode].format(**known)))
        return found

    def source(self) -> str:
        """The subscript of the element of the operand that comes to a place of the result."""
        if self.size.isdigit() and self.is_padded:
            return self._repeated()
        (begin, _, found), *rest = self.parts()
        text = found.format(place=self._from(begin))
        for begin, _, found in rest:
            text = f"{self.name} >= {begin} ? {found.format(place=self._from(begin))} : {text}"
        return text

    def _from(self, begin: str) -> str:
        """The place in a part that begins so."""
        return self.name if begin == "0" else f"({self.name} - {begin.replace('+', '-')})"

    def _repeated(self) -> str:
        """The subscript where elements come again and again."""
        extent, first = int(self.size), int(self.first)
        period = extent if self.mode == "wrap" else 2 * extent - 2
        if period <= 1:
            return "0"
        place = f"({_sum(self.name, str(-first % period))}) % {period}"
        return place if self.mode == "wrap" else f"{place} < {extent} ? {place} : {period} - {place}"


def _copied(axes: Sequence[_Axis]) -> list[str]:
    """The statements that repeat elements; along the last axis, where they lie beside each other, part by part."""
    *outer, inner = axes
    sources = [axis.source() for axis in outer]
    ranges = [f"{axis.name} in 0:{axis.extent}" for axis in outer]
    names = [axis.name for axis in outer]
    if inner.size.isdigit():
        read = access("A", [*sources, inner.source()])
        clauses = [*ranges, f"{inner.name} in 0:{inner.extent}"]
        return [f"{access('Y', [*names, inner.name])} = {read} where {', '.join(clauses)}"]
    statements = []
    for begin, count, found in inner.parts():
        target = access("Y", [*names, _sum(inner.name, begin)])
        clauses = [*ranges, f"{inner.name} in 0:{count}"]
        read = access("A", [*sources, found.format(place=inner.name)])
        statements.append(f"{target} = {read} where {', '.join(clauses)}")
    return statements


def _framed(axes: Sequence[_Axis], type: ScalarType, other: str) -> str:
    """The statement that puts ``other`` around the operand."""
    inside = []
    for axis in axes:
        inside += [] if axis.first == "0" else [f"{axis.name} >= {axis.first}"]
        inside += [] if axis.last == "0" else [f"{axis.name} < {_sum(axis.size, axis.first)}"]
    places = [axis.name if axis.first == "0" else f"{axis.name} - {axis.first}" for axis in axes]
    clauses = [f"{axis.name} in 0:{axis.extent}" for axis in axes]
    value = f"{' && '.join(inside)} ? {access('A', places)} : {other}"
    return f"{access('Y', [axis.name for axis in axes])} = {type}({value}) where {', '.join(clauses)}"


def _cropped(builder: Builder, x: Value, before: Sequence[Dimension], after: Sequence[Dimension]) -> Value:
    """The tensor without the elements that negative numbers take away."""
    starts, shape = [], []
    for extent, first, last in zip(x.shape, before, after, strict=True):
        less = [-amount if isinstance(amount, int) and amount < 0 else 0 for amount in (first, last)]
        starts.append(less[0])
        shape.append(extent - sum(less))
    return builder.slice(x, starts, [1] * len(starts), shape)


def _is_repeated(extent: int, amounts: Sequence[Dimension], mode: str) -> bool:
    """Whether there are so many elements more that some of the operand come several times on one side."""
    most = {"reflect": extent - 1, "wrap": extent}.get(mode)
    return most is not None and all(isinstance(amount, int) for amount in amounts) and max(amounts) > most


def _sum(*terms: str) -> str:
    return " + ".join(term for term in terms if term != "0") or "0"
