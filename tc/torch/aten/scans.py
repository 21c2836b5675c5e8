"""Running reductions along a dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import torch

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import cast
from tc.graph.operators.scans import log_sum_scanned, scanned, scanned_with_places
from tc.torch.fx.operation import Operation, Rule, Rules, extents

aten: Final = torch.ops.aten


def _line(operation: Operation, type: ScalarType) -> Value:
    """``self`` as a type, with one dimension at least."""
    own = cast(operation.builder, operation.value("self"), type)
    return own if own.shape else operation.builder.reshape(own, (1,))


def _running(operator: str) -> Rule:
    def rule(operation: Operation) -> Value:
        own = _line(operation, operation.type)
        found = scanned(operation.builder, own, operation.axis("dim"), operator)
        return operation.builder.reshape(found, operation.value("self").shape)

    return rule


def _extreme(operator: str) -> Rule:
    def rule(operation: Operation) -> Sequence[Value]:
        type = ScalarType.UINT8 if operation.type is ScalarType.BOOL else operation.type
        values, places = scanned_with_places(operation.builder, _line(operation, type), operation.axis("dim"), operator)
        shape = operation.value("self").shape
        return [
            operation.builder.reshape(cast(operation.builder, values, operation.type), shape),
            operation.builder.reshape(places, shape),
        ]

    return rule


def _log_sum(operation: Operation) -> Value:
    own = operation.value("self")
    if math.prod(extents(own)) == 0:
        return own
    found = log_sum_scanned(operation.builder, _line(operation, own.type), operation.axis("dim"))
    return operation.builder.reshape(found, own.shape)


RULES: Final[Rules] = {
    aten.cumsum.default: _running("+=!"),
    aten.cumprod.default: _running("*=!"),
    aten.cummax.default: _extreme("max=!"),
    aten.cummin.default: _extreme("min=!"),
    aten.logcumsumexp.default: _log_sum,
}
