"""Where values belong among sorted ones: how many of these come before."""

from __future__ import annotations

from typing import Final

import torch

from tc.graph.ir.values import Value
from tc.graph.operators.texts import access, declared, definition, iterators
from tc.torch.aten.factories import filled
from tc.torch.fx.operation import Operation, Rules, UnclaimedError, extents
from tc.torch.fx.types import array_as

aten: Final = torch.ops.aten
# Every value is compared with all of so many; among more, halving is faster.
_MOST_COMPARED: Final = 512


def _searched(operation: Operation) -> Value:
    if operation.has("sorter"):
        raise UnclaimedError("takes an order beside what is sorted")
    right = bool(operation["right"]) or operation["side"] == "right"
    return _before(operation, operation.value("sorted_sequence"), operation["self"], right=right)


def _bucket(operation: Operation) -> Value:
    return _before(operation, operation.value("boundaries"), operation["self"], right=bool(operation["right"]))


def _before(operation: Operation, ordered: Value, given: Value | float, *, right: bool) -> Value:
    """``right``: those that are equal come before.  What is not a number comes last."""
    count = extents(ordered)[-1]
    if count > _MOST_COMPARED:
        raise UnclaimedError(f"searches more than {_MOST_COMPARED} elements")
    builder = operation.builder
    values = given if isinstance(given, Value) else builder.constant(array_as(given, ordered.type), "value")
    if count == 0 or 0 in extents(values):
        return filled(operation, values.shape, 0)
    names = iterators(len(values.shape))
    among = access("S", [*(names[:-1] if len(ordered.shape) > 1 else ()), "k"])
    holds = f"!({among} {'>' if right else '>='} {access('X', names)})"
    place = access("Y", names)
    statement = f"{place} +=! {operation.type}({holds})"
    text = definition("searched", [declared(ordered, "S", "M"), declared(values, "X")], ["Y"], [statement])
    return operation.one(text, ordered, values)


RULES: Final[Rules] = {
    aten.searchsorted.Tensor: _searched,
    aten.searchsorted.Scalar: _searched,
    aten.bucketize.Tensor: _bucket,
    aten.bucketize.Scalar: _bucket,
}
