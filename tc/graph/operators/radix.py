"""Sorting of many elements along an axis by their digits, from the last to the first.

Each pass moves the elements to where those of a digit lie, without changing their order: a few scans and a scatter.
"""

from __future__ import annotations

from typing import Final

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.operators.bits import unsigned
from tc.graph.operators.pointwise import cast, pointwise
from tc.graph.operators.texts import definition, literal, parameter

_BITS: Final = 4


def argsorted(builder: Builder, operand: Value, axis: int, *, descending: bool) -> Value:
    """Indices of the elements along an axis in order; of equal elements the first comes first.

    NaN counts as infinity.
    """
    rank = len(operand.shape)
    axes = [*(at for at in range(rank) if at != axis), axis]
    moved = builder.permute(operand, axes)
    rows = (elements(moved.shape[:-1]), moved.shape[-1])
    keys = builder.reshape(_keys(builder, moved, descending), rows)
    start = definition(
        "places", [parameter(keys.type, ["B", "N"], "K")], ["O"], ["O(b, i) = int32(i) where exists K(b, i)"]
    )
    (order,) = builder.call(start, keys)
    for _ in range(8 * keys.type.itemsize // _BITS):
        keys, order = _pass(builder, keys, order)
    found = cast(builder, builder.reshape(order, moved.shape), ScalarType.INT64)
    return builder.permute(found, [axes.index(at) for at in range(rank)])


def _keys(builder: Builder, operand: Value, descending: bool) -> Value:
    """Unsigned integers in the order of the elements, or in the opposite one."""
    type = operand.type
    if type.is_floating:  # both zeros are equal
        plain = f"{{0}} == 0 ? 0 : {{0}} == {{0}} ? {{0}} : {literal(float('inf'), type)}"
        operand = pointwise(builder, "plain", plain, [operand], type)
    bits = unsigned(builder, operand)
    top, ones = literal(1 << (8 * type.itemsize - 1), bits.type), literal(bits.type.maximum, bits.type)
    if type.is_floating:  # the bits of negative numbers grow as the numbers fall
        key = f"({{0}} >= {top} ? {ones} - {{0}} : {{0}} + {top})"
    else:
        key = "{0}" if type is bits.type else f"({{0}} + {top})"
    return pointwise(builder, "keys", f"{ones} - {key}" if descending else key, [bits], bits.type)


def ordered(builder: Builder, operand: Value) -> Value:
    """Integers in the order of the elements: NaN is greater than infinity, and truth greater than falsehood."""
    if operand.type is ScalarType.BOOL:
        return cast(builder, operand, ScalarType.UINT8)
    if not operand.type.is_floating:
        return operand
    keys = _keys(builder, operand, descending=False)
    greatest = literal(keys.type.maximum, keys.type)
    return pointwise(builder, "ordered", f"{{0}} == {{0}} ? {{1}} : {greatest}", [operand, keys], keys.type)


def _pass(builder: Builder, keys: Value, order: Value) -> tuple[Value, Value]:
    """The keys without their last digit, in its order, and what comes with them."""
    digits = 1 << _BITS
    digit = f"K(b, {{}}) % {digits}"
    places = [
        f"D(b, i) = int32({digit.format('i')})",
        f"C(b, d) +=! int32(D(b, i) == d) where d in 0:{digits}",
        f"S(b, d) +=! C(b, e) where d in 0:{digits}, e in 0:d",
        f"Z(b, d, i) +=! int32({digit.format('j')} == d) where d in 0:{digits}, i in 0:N, j in 0:i",
        "P(b, i) = int64(b) * N + S(b, D(b, i)) + Z(b, D(b, i), i)",  # all rows lie one after the other
    ]
    text = definition("digit_places", [parameter(keys.type, ["B", "N"], "K")], ["P"], places)
    (target,) = builder.call(text, keys)
    flat = (elements(keys.shape),)
    moves = [
        f"L(P(z)) +=! K(z) / {digits} where P(z) in 0:Z",
        "Q(P(z)) +=! O(z) where P(z) in 0:Z",
    ]
    parameters = [parameter(v.type, ["Z"], name) for v, name in ((keys, "K"), (order, "O"), (target, "P"))]
    moved = builder.call(
        definition("moved", parameters, ["L", "Q"], moves), *(builder.reshape(v, flat) for v in (keys, order, target))
    )
    left, right = (builder.reshape(value, keys.shape) for value in moved)
    return left, right
