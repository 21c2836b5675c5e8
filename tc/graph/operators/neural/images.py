"""Operators that move elements between channels and places: blocks, and columns of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension
from tc.graph.ir.values import Value
from tc.graph.operators.extents import extents_of
from tc.graph.operators.neural.windows import Windows, where
from tc.graph.operators.texts import access, definition, literal, parameter


def depth_to_space(builder: Builder, x: Value, block: int, *, channels_first: bool) -> Value:
    """Blocks of channels (N, C, H, W) become blocks of places.

    ``channels_first``: a channel of the result comes from channels beside each other.
    """
    count, channels, height, width = x.shape
    each = channels // (block * block)
    parts = (each, block, block) if channels_first else (block, block, each)
    sizes, order = (["C", block, block], "c, i, j") if channels_first else ([block, block, "C"], "i, j, c")
    statement = f"Y(n, c, {block} * h + i, {block} * w + j) = X(n, {order}, h, w)"
    text = definition("depth_to_space", [parameter(x.type, ["N", *sizes, "H", "W"], "X")], ["Y"], [statement])
    return builder.call(text, builder.reshape(x, (count, *parts, height, width)))[0]


def space_to_depth(builder: Builder, x: Value, block: int, *, channels_first: bool) -> Value:
    """Blocks of places (N, C, H, W) become blocks of channels."""
    count, channels, height, width = x.shape
    order = "c, i, j" if channels_first else "i, j, c"
    ranges = [f"i in 0:{block}", f"j in 0:{block}", f"h in 0:H / {block}", f"w in 0:W / {block}"]
    statement = f"Y(n, {order}, h, w) = X(n, c, {block} * h + i, {block} * w + j){where(ranges)}"
    text = definition("space_to_depth", [parameter(x.type, ["N", "C", "H", "W"], "X")], ["Y"], [statement])
    return builder.reshape(builder.call(text, x)[0], (count, channels * block * block, height // block, width // block))


def image_to_columns(builder: Builder, x: Value, windows: Windows, counts: Sequence[int]) -> Value:
    """The elements of windows, zeros outside: (N, C, ...) becomes (N, C * kernel, windows).

    ``counts``: how many windows there are along each axis.
    """
    at = ["n", "c", *windows.elements, *windows.places]
    ranges = [f"{place} in 0:{count}" for place, count in zip(windows.places, counts, strict=True)]
    ranges += [f"{k} in 0:{extent}" for k, extent in zip(windows.elements, windows.kernel, strict=True)]
    inside = [
        clause
        for window, position, size in zip(windows.axes, windows.positions, windows.sizes, strict=True)
        for clause in (f"{position} >= 0", f"{position} < {size}")
        if window.padded
    ]
    read = access("X", ["n", "c", *windows.positions])
    value = f"{' && '.join(inside)} ? {read} : {literal(0, x.type)}" if inside else read
    statement = f"{access('Y', at)} = {value}{where(ranges)}"
    text = definition("im2col", [parameter(x.type, ["N", "C", *windows.sizes], "X")], ["Y"], [statement])
    (found,) = builder.call(text, x)
    return builder.reshape(found, (x.shape[0], x.shape[1] * math.prod(windows.kernel), math.prod(counts)))


def columns_to_image(
    builder: Builder, x: Value, windows: Windows, counts: Sequence[Dimension], shape: Sequence[Dimension]
) -> Value:
    """The sum of windows at their places: (N, C * kernel, windows) becomes (N, C, ...) with the given shape.

    ``counts``: how many windows there are along each axis.
    """
    extents = extents_of(builder, shape)
    sources, clauses = windows.sources()
    ranges = [f"{place} in 0:{extent}" for place, extent in zip(windows.places, extents.texts, strict=True)]
    target = access("Y", ["n", "c", *windows.places])
    kernel = [f"{k} in 0:{extent}" for k, extent in zip(windows.elements, windows.kernel, strict=True)]
    read = access("X", ["n", "c", *windows.elements, *sources])
    statement = f"{target} +=! {read}{where([*ranges, *kernel, *clauses])}"
    parameters = [parameter(x.type, ["N", "C", *windows.kernel, *windows.sizes], "X"), *extents.parameters]
    channels = x.shape[1] // math.prod(windows.kernel)
    view = builder.reshape(x, (x.shape[0], channels, *windows.kernel, *counts))
    return builder.call(definition("col2im", parameters, ["Y"], [statement]), view, *extents.operands)[0]
