"""Attention and what goes with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType, computation_type, promote
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.onnx.operators.neural.linear_attention import linear_attention
from tc.graph.operators.neural.attentions import Attention, Stage, attention
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.texts import definition, literal, parameter

# What `qk_matmul_output` is, by its mode.
_STAGES: Final = (Stage.SCALED, Stage.CAPPED, Stage.MASKED, Stage.WEIGHT)
_PLACES: Final = {"mask": 3, "past_key": 4, "past_value": 5, "length": 6}


def _attention(operation: Operation) -> Sequence[Value]:
    query, key, value = (operation.operand(index) for index in range(3))
    extras = {name: found for name, place in _PLACES.items() if (found := operation.optional(place)) is not None}
    if ("past_key" in extras) != ("past_value" in extras):
        raise operation.error("`past_key` and `past_value` must be given together")
    if "length" in extras and "past_key" in extras:
        raise operation.error("`nonpad_kv_seqlen` must not be given together with `past_key`")
    packed = len(query.shape) == 3
    if packed:
        heads, groups = operation.integer("q_num_heads"), operation.integer("kv_num_heads")
        query = _by_head(operation, query, heads)
        key, value = (_by_head(operation, operand, groups) for operand in (key, value))
    shown = [*operation.results, "", "", ""][3]
    how = _how(operation, query.type, packed, bool(shown))
    result, *others = attention(operation.builder, how, query, key, value, extras)
    if packed:
        batch, rows, count, size = result.shape
        result = operation.builder.reshape(result, (batch, rows, count * size))
    return [result, *others] if "past_key" in extras else [result, key, value, *others]


def _how(operation: Operation, type: ScalarType, packed: bool, shown: bool) -> Attention:
    """What the attributes say."""
    kind = computation_type(type)
    if operation.integer("softmax_precision", 0):
        kind = promote(kind, computation_type(operation.type_of(operation.integer("softmax_precision"))))
    mode = operation.integer("qk_matmul_output_mode", 0)
    if mode not in range(len(_STAGES)):
        raise operation.error(f"`qk_matmul_output_mode` is {mode}, and must be 0 to {len(_STAGES) - 1}")
    windows = [operation.integer(name, -1) for name in ("left_window_size", "right_window_size")]
    before, behind = (None if size < 0 else size for size in windows)
    return Attention(
        operation.number("scale") if "scale" in operation.attributes else None,
        operation.number("softcap", 0.0),
        bool(operation.integer("is_causal", 0)),
        before,
        behind,
        kind,
        packed,
        _STAGES[mode] if shown else None,
    )


def _by_head(operation: Operation, operand: Value, heads: int) -> Value:
    """A view (B,H,N,E) of what has its heads side by side, (B,N,H*E)."""
    batch, rows, size = operand.shape
    if heads < 1 or (isinstance(size, int) and size % heads):
        raise operation.error(f"{size} numbers cannot be divided into {heads} heads")
    split = operation.builder.reshape(operand, (batch, rows, heads, size // heads))
    return operation.builder.permute(split, (0, 2, 1, 3))


def _rotary_embedding(operation: Operation) -> Sequence[Value]:
    operand, cosines, sines = (operation.operand(index) for index in range(3))
    places, builder = operation.optional(3), operation.builder
    packed = len(operand.shape) == 3
    if packed:
        batch, rows, size = operand.shape
        heads = operation.integer("num_heads")
        x = builder.reshape(operand, (batch, rows, heads, size // heads))
    else:
        x = operand
    half, part = cosines.shape[-1], operation.integer("rotary_embedding_dim", 0) or x.shape[-1]
    if isinstance(half, int) and isinstance(part, int) and half * 2 != part:
        raise operation.error(f"there are angles for {half} pairs, and {part} numbers of each head to rotate")
    text = _rotation(x, cosines, places, packed, bool(operation.integer("interleaved", 0)), part != x.shape[-1])
    found = operation.one(text, x, cosines, sines, *([] if places is None else [places]))
    return [builder.reshape(found, operand.shape)]


def _rotation(x: Value, angles: Value, places: Value | None, packed: bool, interleaved: bool, rest: bool) -> str:
    """Pairs of numbers, side by side or in two halves, rotated by angles at their places; ``rest`` stays."""
    at = "b, l, h" if packed else "b, h, l"
    extents = "BLHE" if packed else "BHLE"
    table, row = ("BLR", "b, l") if places is None else ("PR", "place(b, l)")
    first, second = ("2 * k", "2 * k + 1") if interleaved else ("k", "k + R")
    parameters = [
        parameter(x.type, extents, "X"),
        parameter(angles.type, table, "cosine"),
        parameter(angles.type, table, "sine"),
    ]
    if places is not None:
        parameters.append(parameter(places.type, "BL", "place"))
    one, other, c, s = f"X({at}, {first})", f"X({at}, {second})", f"cosine({row}, k)", f"sine({row}, k)"
    statements = [
        f"Y({at}, {first}) = {x.type}({c} * {one} - {s} * {other}) where k in 0:R",
        f"Y({at}, {second}) = {x.type}({s} * {one} + {c} * {other}) where k in 0:R",
    ]
    if rest:
        statements.append(f"Y({at}, k + 2 * R) = X({at}, k + 2 * R)")
    return definition("rotary_embedding", parameters, ["Y"], statements)


def _swiglu(operation: Operation) -> Sequence[Value]:
    gate, value = operation.operand(0), operation.operand(1)
    alpha = literal(operation.number("alpha", 1.0), computation_type(gate.type))
    formula = f"{{0}} / (1 + exp(-{alpha} * {{0}})) * {{1}}"
    return [pointwise(operation.builder, "swiglu", formula, [gate, value], gate.type)]


RULES: Final[dict[str, Rule]] = {
    "Attention": _attention,
    "LinearAttention": linear_attention,
    "RotaryEmbedding": _rotary_embedding,
    "SwiGLU": _swiglu,
}
