"""Linear attention: a state for each head, which each position updates and reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation
from tc.graph.operators.texts import definition, literal, parameter

_UPDATES: Final = ("linear", "gated", "delta", "gated_delta")
# Iterators: batch, group of heads that share a state, head in the group, place in a key, place in a value.
_STATE: Final = "S(b, g, e, f)"


def linear_attention(operation: Operation) -> Sequence[Value]:
    """The rule of LinearAttention."""
    query, key, value = (operation.operand(index) for index in range(3))
    heads, groups = operation.integer("q_num_heads"), operation.integer("kv_num_heads")
    if groups < 1 or heads % groups:
        raise operation.error(f"{heads} heads of queries cannot share {groups} heads of keys")
    builder = operation.builder
    batch, steps, size = query.shape
    given = {"query": builder.reshape(query, (batch, steps, groups, heads // groups, size // heads))}
    for name, operand in (("key", key), ("value", value)):
        given[name] = builder.reshape(operand, (batch, steps, groups, operand.shape[2] // groups))
    state = operation.optional(3)
    if state is not None:
        given["state"] = state
    given |= _gates(operation, groups)
    text = _text(given, operation.number("scale", 0.0), query.type if state is None else state.type)
    result, last = operation.call(text, *given.values())
    return [builder.reshape(result, (batch, steps, heads * result.shape[-1])), last]


def _gates(operation: Operation, groups: int) -> dict[str, Value]:
    """The operands that the rule of updates takes: the decay of the state, and the rate of what is written to it."""
    update = operation.text("update_rule", "gated_delta")
    if update not in _UPDATES:
        raise operation.error(f"`update_rule` is {update!r}, and must be one of {', '.join(_UPDATES)}")
    found = {}
    for index, name, needed in ((4, "decay", "gated" in update), (5, "beta", "delta" in update)):
        operand = operation.optional(index)
        if (operand is not None) is not needed:
            raise operation.error(f"`update_rule` {update!r} takes {'a' if needed else 'no'} `{name}`")
        if operand is None:
            continue
        batch, steps, size = operand.shape
        if size not in (1, groups):  # one for each number of a key
            operand = operation.builder.reshape(operand, (batch, steps, groups, size // groups))
        found[name] = operand
    return found


def _text(given: dict[str, Value], scale: float, kept: ScalarType) -> str:
    """The definition; the state is held in float32, and ``kept`` is the type in which it goes out."""
    wide = ScalarType.FLOAT32
    extents = {"query": "BTGRE", "key": "BTGE", "value": "BTGF", "state": "BGEF"}
    reads = {}
    for name in ("decay", "beta"):
        if name in given:
            shape = given[name].shape
            single = shape[2] == 1 and given["key"].shape[2] != 1
            extents[name] = "BT1" if single else "BTGE"[: len(shape)]
            reads[name] = f"{name}(b, t, {'0' if single else ', '.join('ge'[: len(shape) - 2])})"
    first = f"{wide}(state(b, g, e, f))" if "state" in given else f"{wide}(0) where {_RANGES}"
    key, added = "key(b, t, g, e)", "value(b, t, g, f)"
    steps = []
    if "decay" in reads:
        steps.append(f"{_STATE} = exp({wide}({reads['decay']})) * {_STATE}")
    if "beta" in reads:
        steps.append(f"held(b, g, f) +=! {_STATE} * {key}")
        added = f"({reads['beta']} * ({added} - held(b, g, f)))"
    steps += [
        f"{_STATE} = {_STATE} + {key} * {added}",
        f"O(b, t, g, r, f) +=! query(b, t, g, r, e) * {_STATE}",
    ]
    factor = literal(scale, wide) if scale else f"rsqrt({wide}(E))"
    statements = [
        f"{_STATE} = {first}",
        "for t in 0:T {",
        *(f"    {step}" for step in steps),
        "}",
        f"Y(b, t, g, r, f) = {given['query'].type}(O(b, t, g, r, f) * {factor})",
        f"Z(b, g, e, f) = {kept}({_STATE})",
    ]
    parameters = [parameter(operand.type, extents[name], name) for name, operand in given.items()]
    return definition("linear_attention", parameters, ["Y", "Z"], statements)


_RANGES: Final = "b in 0:B, g in 0:G, e in 0:E, f in 0:F"
