"""Elements of operands that are broadcast to a shape."""

from __future__ import annotations

from collections.abc import Sequence

from tc.graph.ir.sizes import Shape
from tc.graph.ir.values import Value
from tc.graph.operators.texts import iterators, parameter, sizes


def spread(
    operand: Value, shape: Shape, name: str, names: Sequence[str] | None = None, extents: Sequence[object] | None = None
) -> tuple[str, list[object]]:
    """The parameter of an operand that is broadcast to a shape, and the subscripts of its element at a place there.

    A dimension of one element is read at 0 where the shape has more.  ``names``, ``extents``: the iterators and sizes
    of the shape; those of ``texts`` by default.
    """
    names = iterators(len(shape)) if names is None else names
    extents = sizes(len(shape)) if extents is None else extents
    first = len(shape) - len(operand.shape)
    whole = [extent != 1 or shape[axis] == 1 for axis, extent in enumerate(operand.shape, first)]
    own = [extents[axis] if keep else 1 for axis, keep in enumerate(whole, first)]
    subscripts: list[object] = [names[axis] if keep else 0 for axis, keep in enumerate(whole, first)]
    return parameter(operand.type, own, name), subscripts
