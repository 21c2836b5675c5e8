"""The gradient of attention, which computes its weights again: they are as many as queries times keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import number
from tc.graph.ir.values import Value
from tc.graph.operators.neural.attentions import ROW, SCORE, Attention, factor_of, logit_of, mask_of, split_heads
from tc.graph.operators.texts import access, definition, literal, parameter

_EXTENTS: Final = {
    "query": "BGRLE",
    "key": "BGNE",
    "value": "BGNF",
    "result": "BGRLF",
    "normal": "BGRL",
    "d_result": "BGRLF",
}


@frozen
class AttendedGradient:
    """The comprehension of what queries, keys and values get of the gradient of the result.

    Its operands are these and the result, the logarithms that ``Attention.normal`` names, the gradient of the result,
    and a mask if there is one.  As in FlashAttention (Dao et al., NeurIPS 2022) a weight is ``exp(logit - normal)``,
    and what softmax takes off its gradient is the product of the result and its gradient.
    """

    how: Attention
    masked: bool

    def text(self, operands: Sequence[Value]) -> str:
        """The definition, whose results ``d_query``, ``d_key`` and ``d_value`` have positions before heads."""
        how, type = self.how, operands[0].type
        given = dict(zip((*_EXTENTS, *(("mask",) if self.masked else ())), operands, strict=True))
        mask = mask_of(given, how)
        parameters = [
            mask.parameter if name == "mask" else parameter(operand.type, _EXTENTS[name], name)
            for name, operand in given.items()
        ]
        logit, weight, d_weight, slope = (access(name, SCORE) for name in ("logit", "weight", "d_weight", "slope"))
        unseen = f"{logit} == {literal(-math.inf, how.kind)}"
        statements = [
            f"{access('product', SCORE)} +=! query(b, g, r, l, e) * key(b, g, s, e)",
            f"{logit} = {logit_of(how, given, mask, type)}",
            f"{weight} = {unseen} ? 0 : exp({logit} - {access('normal', ROW)})",
            *_summed(type, "d_value(b, s, g, f)", f"{weight} * d_result(b, g, r, l, f)"),
            f"{access('own', ROW)} +=! d_result(b, g, r, l, f) * result(b, g, r, l, f)",
            f"{d_weight} +=! d_result(b, g, r, l, f) * value(b, g, s, f)",
            f"{slope} = {weight} * ({d_weight} - {access('own', ROW)}) * {factor_of(how)}",
            *_summed(type, "d_query(b, l, g, r, e)", f"{slope} * key(b, g, s, e)"),
            *_summed(type, "d_key(b, s, g, e)", f"{slope} * query(b, g, r, l, e)"),
        ]
        return definition("attention_gradient", parameters, ["d_query", "d_key", "d_value"], statements)


def attention_gradient(
    builder: Builder,
    how: Attention,
    operands: tuple[Value, Value, Value, Value, Value, Value],
    mask: Value | None = None,
) -> tuple[Value, ...]:
    """The results of ``AttendedGradient`` for queries, keys, values, result, logarithms and gradient of the result.

    They are views of what has positions before heads, as PyTorch's are.  Queries have the shape (B,H,L,E), and some of
    their heads in a row share those of keys.
    """
    query, key, value, result, normal, adjoint = operands
    heads, groups = (number(one.shape[1], "the number of heads") for one in (query, key))
    shared = (groups, heads // groups)
    by_query = [split_heads(builder, one, shared) for one in (query, result, adjoint)]
    flat = builder.reshape(normal, (normal.shape[0], *shared, normal.shape[2]))
    given = [by_query[0], key, value, by_query[1], flat, by_query[2]]
    if mask is not None:
        given.append(split_heads(builder, mask, shared))
    operator = AttendedGradient(how, mask is not None)
    d_query, *others = builder.call(operator.text(tuple(given)), *given, operator=operator)
    batch, rows, size = query.shape[0], query.shape[2], query.shape[3]
    found = (builder.reshape(d_query, (batch, rows, heads, size)), *others)
    return tuple(builder.permute(one, (0, 2, 1, 3)) for one in found)


def _summed(type: ScalarType, result: str, term: str) -> list[str]:
    """A sum that is a result; a half is rounded once."""
    if not type.is_half:
        return [f"{result} +=! {term}"]
    total = f"sum_{result}"
    return [f"{total} +=! {term}", f"{result} = {type}({total})"]
