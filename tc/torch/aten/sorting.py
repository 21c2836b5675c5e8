"""Sorting, the first elements of an order, and medians.

Of equal elements the first comes first, as where PyTorch sorts stably.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import torch

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.operators.sorting import first_sorted, median
from tc.torch.aten.factories import filled
from tc.torch.aten.views import sliced
from tc.torch.fx.operation import Operation, Rule, Rules, UnclaimedError, extents

aten: Final = torch.ops.aten


def _line(operation: Operation) -> tuple[Value, int, int]:
    """``self`` with one dimension at least, the dimension that is sorted, and its extent."""
    own = operation.value("self")
    line = own if own.shape else operation.builder.reshape(own, (1,))
    axis = operation.axis("dim") if operation.has("dim") else len(line.shape) - 1
    return line, axis, extents(line)[axis]


def _first(operation: Operation, count: int, *, largest: bool) -> list[Value]:
    line, axis, _ = _line(operation)
    shape = (*line.shape[:axis], count, *line.shape[axis + 1 :])
    if 0 in extents(line) or count == 0:
        return [filled(operation, shape, 0, type) for type in (operation.type, ScalarType.INT64)]
    return list(first_sorted(operation.builder, line, count, axis, largest=largest))


def _sorted(operation: Operation) -> Sequence[Value]:
    own = operation.value("self")
    found = _first(operation, _line(operation)[2], largest=bool(operation["descending"]))
    return [operation.builder.reshape(one, own.shape) for one in found]


def _top(operation: Operation) -> Sequence[Value]:
    own = operation.value("self")
    found = _first(operation, operation.integer("k"), largest=operation["largest"] is not False)
    return found if own.shape else [operation.builder.reshape(one, ()) for one in found]


def _kept(operation: Operation, found: Sequence[Value], axis: int) -> list[Value]:
    """Values and indices of one element along the axis, which goes unless it is kept."""
    if operation["keepdim"] and operation.value("self").shape:
        return list(found)
    return [operation.builder.reshape(one, (*one.shape[:axis], *one.shape[axis + 1 :])) for one in found]


def _nth(operation: Operation) -> Sequence[Value]:
    _, axis, _ = _line(operation)
    count = operation.integer("k")
    found = _first(operation, count, largest=False)
    return _kept(operation, [sliced(operation, one, axis, count - 1, 1, 1) for one in found], axis)


def _median(*, ignores_nan: bool) -> Rule:
    def rule(operation: Operation) -> Sequence[Value]:
        line, axis, _ = _line(operation)
        if 0 in extents(line):
            raise UnclaimedError("has no elements")
        return _kept(operation, median(operation.builder, line, axis, ignores_nan=ignores_nan), axis)

    return rule


def _median_of_all(*, ignores_nan: bool) -> Rule:
    def rule(operation: Operation) -> Value:
        own = operation.value("self")
        count = math.prod(extents(own))
        if count == 0:
            raise UnclaimedError("has no elements")
        line = operation.builder.reshape(own, (count,))
        found, _ = median(operation.builder, line, 0, ignores_nan=ignores_nan)
        return operation.builder.reshape(found, ())

    return rule


RULES: Final[Rules] = {
    aten.sort.default: _sorted,
    aten.sort.stable: _sorted,
    aten.topk.default: _top,
    aten.kthvalue.default: _nth,
    aten.median.default: _median_of_all(ignores_nan=False),
    aten.median.dim: _median(ignores_nan=False),
    aten.nanmedian.default: _median_of_all(ignores_nan=True),
    aten.nanmedian.dim: _median(ignores_nan=True),
}
