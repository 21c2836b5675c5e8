"""Convolutions over borders become those of images with zeros around them, without conditions on where they read."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tc.graph.ir.builder import Builder
from tc.graph.ir.nodes import Call
from tc.graph.ir.sizes import Shape
from tc.graph.ir.values import Value
from tc.graph.operators.neural.convolution import Convolved, Moved
from tc.graph.operators.neural.padding import padded
from tc.graph.operators.neural.windows import Window, Windows
from tc.graph.rewrite.pattern import Any, Match
from tc.graph.rewrite.rule import Rule, Where


def _has_borders(match: Match) -> bool:
    """Whether the root is a convolution, or the adjoint of one, with conditions on where it reads the image.

    Those of single channels read and write little less than a copy of the image would.
    """
    root = match.root
    if not (isinstance(root, Call) and isinstance(root.operator, Convolved)) or root.operator.phases is not None:
        return False
    at, several = root.operator.at, root.operator.channels.weights != "c"
    return several and any(f"{position} in " in clause for position in at.positions for clause in at.clauses)


def _with_zeros(builder: Builder, match: Match) -> Value | None:
    """The convolution of the larger image; None for what is no plain one, and for an adjoint with strides."""
    root = match.root
    assert isinstance(root, Call)
    assert isinstance(root.operator, Convolved)
    operator, (x, *others) = root.operator, (match.net.value(name) for name in root.operands)
    windows, rank = operator.windows, len(operator.windows.axes)
    counts, extents = _numbers(match.result.shape[-rank:]), _numbers(x.shape[-rank:])
    if counts is None or extents is None or not all(isinstance(axis.before, int) for axis in windows.axes):
        return None
    forward = operator.positions == tuple(windows.positions)
    if not forward and (
        any(axis.stride > 1 for axis in windows.axes) or operator.positions != tuple(windows.sources()[0])
    ):
        return None
    reach = _reach if forward else _reach_of_adjoint
    reaches = [reach(axis, count) for axis, count in zip(windows.axes, counts, strict=True)]
    before = [max(0, -first) for first, _ in reaches]
    after = [max(0, last + 1 - extent) for (_, last), extent in zip(reaches, extents, strict=True)]
    moved = Windows(
        tuple(
            replace(axis, before=_before(axis) + (-more if forward else more), after=0, beyond=False)
            for axis, more in zip(windows.axes, before, strict=True)
        )
    )
    ranges = tuple(f"{place} in 0:{count}" for place, count in zip(windows.places, counts, strict=True))
    at = Moved(
        operator.at.sizes,
        tuple(moved.positions if forward else moved.sources()[0]),
        operator.at.places,
        (*ranges, *(f"{k} in 0:{extent}" for k, extent in zip(windows.elements, windows.kernel, strict=True))),
    )
    outer = [0] * (len(x.shape) - rank)
    image = padded(builder, x, [*outer, *before], [*outer, *after])
    return builder.apply(replace(operator, windows=moved, at=at), image, *others)


def _reach(axis: Window, count: int) -> tuple[int, int]:
    """The first and the last element of the image that so many windows have."""
    before = _before(axis)
    return -before, axis.stride * (count - 1) + axis.dilation * (axis.kernel - 1) - before


def _reach_of_adjoint(axis: Window, count: int) -> tuple[int, int]:
    """The first and the last window, of stride 1, whose elements come to so many places."""
    before = _before(axis)
    return before - axis.dilation * (axis.kernel - 1), count - 1 + before


def _before(axis: Window) -> int:
    assert isinstance(axis.before, int)
    return axis.before


def _numbers(shape: Shape) -> list[int] | None:
    """The extents, if they are known, and none is 0."""
    found = [extent for extent in shape if isinstance(extent, int) and extent > 0]
    return found if len(found) == len(shape) else None


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "zeros around images",
        Any("root"),
        _with_zeros,
        _has_borders,
        "conv(x, w) over borders -> conv(pad(x), w), on GPUs, whose lanes would wait for each other's conditions",
        late=True,
        where=Where.GPUS,
    ),
)
