"""Operators that read where indices say."""

from __future__ import annotations

from typing import Final

import torch

from tc.graph.ir.values import Value
from tc.graph.operators.gathers import gathered, gathered_elements
from tc.graph.operators.indexed import indexed
from tc.torch.aten.factories import filled
from tc.torch.fx.operation import Operation, Rules, UnclaimedError

aten: Final = torch.ops.aten


def indices_of(operation: Operation) -> list[Value | None]:
    """The indices by dimension; UnclaimedError for flags, which choose as many elements as they say."""
    found = operation["indices"]
    if any(isinstance(index, Value) and not index.type.is_integer for index in found):
        raise UnclaimedError("has a result whose shape depends on data")
    return list(found)


def _index(operation: Operation) -> Value:
    return indexed(operation.builder, operation.value("self"), indices_of(operation))


def _index_select(operation: Operation) -> Value:
    builder, own, index = operation.builder, operation.value("self"), operation.value("index")
    if not own.shape:
        return gathered(builder, builder.reshape(own, (1,)), builder.reshape(index, ()), 0, wraps=False)
    places = index if index.shape else builder.reshape(index, (1,))
    return gathered(builder, own, places, operation.axis("dim"), "index_select", wraps=False)


def _gather(operation: Operation) -> Value:
    builder, own, index = operation.builder, operation.value("self"), operation.value("index")
    if 0 in index.shape:  # it may have other dimensions
        return filled(operation, index.shape, 0)
    if not own.shape or not index.shape:
        flat = builder.reshape(own, (1,)) if not own.shape else own
        found = gathered_elements(builder, flat, builder.reshape(index, index.shape or (1,)), 0, wraps=False)
        return builder.reshape(found, index.shape)
    return gathered_elements(builder, own, index, operation.axis("dim"), wraps=False)


def _embedding(operation: Operation) -> Value:
    table, rows = operation.value("weight"), operation.value("indices")
    return gathered(operation.builder, table, rows, 0, "embedding", wraps=False)


RULES: Final[Rules] = {
    aten.index.Tensor: _index,
    aten._unsafe_index.Tensor: _index,
    aten.index_select.default: _index_select,
    aten.gather.default: _gather,
    aten.embedding.default: _embedding,
}
