"""Views: other shapes and strides of what lies in memory already, so that nothing is moved.

A view is data: ``Reshape``, ``Permute``, ``Slice``, ``Expand`` or ``Reinterpret``; ``viewed`` says what becomes of a
value.
"""

from __future__ import annotations

import itertools
from typing import TypeAlias, assert_never

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.sizes import Dimension, Shape, elements, shape_text
from tc.graph.ir.values import Value, contiguous


@frozen
class Reshape:
    """The same elements in the same order, in another shape."""

    shape: Shape


@frozen
class Permute:
    """Dimension ``i`` of the result is dimension ``axes[i]`` of the operand."""

    axes: tuple[int, ...]


@frozen
class Slice:
    """Elements ``start + step * i`` of every dimension; ``shape`` says how many."""

    starts: tuple[Dimension, ...]
    steps: tuple[int, ...]
    shape: Shape


@frozen
class Expand:
    """Dimensions of one element are repeated, and new ones come before, with stride 0."""

    shape: Shape


@frozen
class Reinterpret:
    """The same bytes as elements of another type of the same size."""

    type: ScalarType


Viewing: TypeAlias = Reshape | Permute | Slice | Expand | Reinterpret


def viewed(operand: Value, how: Viewing, name: str) -> tuple[Value, Dimension] | None:
    """The value that the view is, and where its first element lies, in elements after the operand's.

    None where its elements do not lie so in memory, which is so only for some that are reshaped: copy the operand
    first.  GraphError where the view does not fit the operand.
    """
    match how:
        case Reshape(shape):
            _require_fit(elements(operand.shape) == elements(shape), operand, f"reshaped to ({shape_text(shape)})")
            strides = _reshaped(operand, shape)
            return None if strides is None else (Value(name, operand.type, shape, strides), 0)
        case Permute(axes):
            _require_fit(sorted(axes) == list(range(len(operand.shape))), operand, f"permuted by {axes}")
            shape = tuple(operand.shape[axis] for axis in axes)
            return Value(name, operand.type, shape, tuple(operand.steps[axis] for axis in axes)), 0
        case Slice(starts, steps, shape):
            ranks = {len(starts), len(steps), len(shape), len(operand.shape)}
            _require_fit(len(ranks) == 1, operand, f"sliced by {len(starts)} ranges")
            _require_inside(operand, how)
            strides = tuple(step * stride for step, stride in zip(steps, operand.steps, strict=True))
            offset: Dimension = 0
            for start, stride in zip(starts, operand.steps, strict=True):
                offset = offset + start * stride
            return Value(name, operand.type, shape, strides), offset if elements(shape) != 0 else 0
        case Expand(shape):
            return Value(name, operand.type, shape, _expanded(operand, shape)), 0
        case Reinterpret(type):
            _require_fit(type.itemsize == operand.type.itemsize, operand, f"read as {type}")
            return Value(name, type, operand.shape, operand.strides), 0
        case _:
            assert_never(how)


def _require_fit(fits: bool, operand: Value, what: str) -> None:
    if not fits:
        raise GraphError(f"`{operand.name}` of shape ({shape_text(operand.shape)}) cannot be {what}")


def _require_inside(operand: Value, how: Slice) -> None:
    for start, step, count, extent in zip(how.starts, how.steps, how.shape, operand.shape, strict=True):
        if not all(isinstance(size, int) for size in (start, count, extent)) or count == 0:
            continue
        last = start + step * (count - 1)
        _require_fit(0 <= start < extent and 0 <= last < extent, operand, f"sliced from {start} to {last}")


def _expanded(operand: Value, shape: Shape) -> Shape:
    new = len(shape) - len(operand.shape)
    _require_fit(new >= 0, operand, f"expanded to ({shape_text(shape)})")
    strides: list[Dimension] = [0] * new
    for extent, wanted, stride in zip(operand.shape, shape[new:], operand.steps, strict=True):
        _require_fit(extent in (1, wanted), operand, f"expanded to ({shape_text(shape)})")
        strides.append(stride if extent == wanted else 0)
    return tuple(strides)


def _reshaped(operand: Value, shape: Shape) -> Shape | None:
    """Strides of the elements in another shape, as NumPy finds them; None if there are none."""
    if operand.is_contiguous or elements(shape) in (0, 1):
        return contiguous(shape)
    old = [(extent, stride) for extent, stride in zip(operand.shape, operand.steps, strict=True) if extent != 1]
    if not all(isinstance(size, int) for size in (*operand.shape, *operand.steps, *shape)):
        kept = [extent for extent in shape if extent != 1]
        if kept != [extent for extent, _ in old]:
            return None
        given = iter(stride for _, stride in old)
        return tuple(1 if extent == 1 else next(given) for extent in shape)
    return _regrouped(old, shape)  # type: ignore[arg-type]  # all are numbers


def _regrouped(old: list[tuple[int, int]], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides of groups of dimensions that hold as many elements before as after; None if one lies in pieces."""
    strides: list[int] = []
    at, into = 0, 0
    while into < len(shape):
        if shape[into] == 1:
            strides.append(1)
            into += 1
            continue
        until, count, total = at + 1, old[at][0], shape[into]
        end = into + 1
        while count != total:
            if count < total:
                count *= old[until][0]
                until += 1
            else:
                total *= shape[end]
                end += 1
        group = old[at:until]
        if any(outer != inner * extent for (_, outer), (extent, inner) in itertools.pairwise(group)):
            return None
        step, found = group[-1][1], []
        for extent in reversed(shape[into:end]):
            found.append(step)
            step *= extent
        strides += reversed(found)
        at, into = until, end
    return tuple(strides)
