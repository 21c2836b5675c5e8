"""Attention of heads of queries, keys and values, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch

from tc.base.types import computation_type
from tc.graph.ir.values import Value
from tc.graph.operators.neural.attention_gradients import attention_gradient
from tc.graph.operators.neural.attentions import Attention, attention
from tc.torch.fx.operation import Operation, Rules, UnclaimedError

aten: Final = torch.ops.aten


def _attention(operation: Operation) -> Sequence[Value | None]:
    query, key, value = (operation.value(name) for name in ("query", "key", "value"))
    mask = operation.optional("attn_mask")
    extras = {} if mask is None else {"mask": mask}
    builder = operation.builder
    # The result lies in memory as queries do, so that nothing is copied.
    layout: torch.Tensor = operation.node.meta["val"][0]
    by_position = bool(layout.stride(2) > layout.stride(1))
    how = replace(_how(operation), by_position=by_position, normal=operation.wants(1))
    result, *normal = attention(builder, how, query, key, value, extras)
    result = builder.permute(result, (0, 2, 1, 3)) if by_position else result
    return [result, *(normal if how.normal else [None])]


def _gradient(operation: Operation) -> Sequence[Value | None]:
    names = ("query", "key", "value", "out", "logsumexp", "grad_out")
    query, key, value, result, normal, adjoint = (operation.value(name) for name in names)
    operands = (query, key, value, result, normal, adjoint)
    return attention_gradient(operation.builder, _how(operation), operands, operation.optional("attn_mask"))


def _how(operation: Operation) -> Attention:
    if operation.number("dropout_p"):
        raise UnclaimedError("drops weights at random")
    scale = float(operation.number("scale")) if operation.has("scale") else None
    causal, kind = bool(operation["is_causal"]), computation_type(operation.value("query").type)
    return Attention(scale=scale, causal=causal, kind=kind)


RULES: Final[Rules] = {
    aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _gradient,
}
