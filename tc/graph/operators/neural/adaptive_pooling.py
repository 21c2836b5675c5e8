"""Pooling to a given number of windows, which lie as evenly over the axes as whole numbers allow.

Window ``i`` of ``count`` over an axis is ``floor(i * extent / count) : ceil((i + 1) * extent / count)``.
"""

from __future__ import annotations

from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.operators.neural.rounding import real_type
from tc.graph.operators.neural.windows import spatial_sizes, summed, where
from tc.graph.operators.texts import access, definition, literal, parameter

_MOST: Final = 1 << 31


@frozen
class Spans:
    """The windows: extents of the axes, and how many windows there are along each."""

    extents: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def sizes(self) -> tuple[str, ...]:
        """What the sizes of the axes are called."""
        return spatial_sizes(len(self.extents))

    @property
    def places(self) -> list[str]:
        """Iterators over windows."""
        return [size.lower() for size in self.sizes]

    @property
    def elements(self) -> list[str]:
        """Iterators over the axes."""
        return [f"i{place}" for place in self.places]

    @property
    def bounds(self) -> list[tuple[str, str]]:
        """Where the windows begin and end."""
        triples = zip(self.places, self.extents, self.counts, strict=True)
        return [
            (f"{place} * {extent} / {count}", f"(({place} + 1) * {extent} + {count - 1}) / {count}")
            for place, extent, count in triples
        ]

    @property
    def counted(self) -> list[str]:
        """The ranges of the iterators over windows."""
        return [f"{place} in 0:{count}" for place, count in zip(self.places, self.counts, strict=True)]

    def clauses(self) -> list[str]:
        """The clauses of what is reduced over each window."""
        inside = [f"{name} in {first}:{end}" for name, (first, end) in zip(self.elements, self.bounds, strict=True)]
        return [*self.counted, *inside]

    def number(self, type: ScalarType) -> str:
        """How many elements a window has."""
        return f"{type}({' * '.join(f'({end} - {first})' for first, end in self.bounds)})"


def adaptive_average_pool(builder: Builder, x: Value, spans: Spans) -> Value:
    """The mean of each window of a tensor (N, C, ...)."""
    at = ["n", "c", *spans.places]
    statements = [
        f"{access('S', at)} +=! {access('X', ['n', 'c', *spans.elements])}{where(spans.clauses())}",
        f"{access('Y', at)} = {x.type}({access('S', at)} / {spans.number(real_type(x.type))})",
    ]
    image = parameter(x.type, ["N", "C", *spans.sizes], "X")
    return builder.call(definition("adaptive_average_pool", [image], ["Y"], statements), x)[0]


def adaptive_average_pool_gradient(builder: Builder, gradient: Value, spans: Spans) -> Value:
    """The gradient of ``adaptive_average_pool``."""
    at = ["n", "c", *spans.places]
    ranges = [f"{name} in 0:{extent}" for name, extent in zip(spans.elements, spans.extents, strict=True)]
    inside = [
        clause
        for name, (first, end) in zip(spans.elements, spans.bounds, strict=True)
        for clause in (f"{first} <= {name}", f"{name} < {end}")
    ]
    statements = [
        f"{access('M', at)} = {access('G', at)} / {spans.number(real_type(gradient.type))}",
        *summed(gradient.type, ["n", "c", *spans.elements], access("M", at), [*ranges, *inside]),
    ]
    image = parameter(gradient.type, ["N", "C", *spans.sizes], "G")
    text = definition("adaptive_average_pool_gradient", [image], ["Y"], statements)
    return builder.call(text, gradient)[0]


def adaptive_max_pool(builder: Builder, x: Value, spans: Spans) -> tuple[Value, ...]:
    """The greatest element of each window, and its place in the plane of its channel.

    Of equal elements the first one counts, and of several that are NaN the last one.
    """
    at, read = ["n", "c", *spans.places], access("X", ["n", "c", *spans.elements])
    plane = ScalarType.INT32 if elements(spans.extents) < _MOST else ScalarType.INT64
    place = ""
    for name, size in zip(spans.elements, spans.sizes, strict=True):
        place = f"({place}) * {size} + {name}" if place else name
    place, found = f"{plane}({place})", access("K", at)
    first = f"{read} == {access('Y', at)} ? -1 - {place} : {literal(plane.minimum + 1, plane)}"
    statements = [
        f"{access('Y', at)} max=! {read}{where(spans.clauses())}",
        f"{found} max=! {read} != {read} ? {place} : {first}{where(spans.clauses())}",
        f"{access('I', at)} = int64({found} >= 0 ? {found} : -1 - {found})",
    ]
    image = parameter(x.type, ["N", "C", *spans.sizes], "X")
    return builder.call(definition("adaptive_max_pool", [image], ["Y", "I"], statements), x)
