"""Operators on the bits of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.bits import bitwise, bitwise_not, shifted
from tc.graph.operators.pointwise import pointwise


def _bitwise(name: str) -> Rule:
    def rule(operation: Operation) -> Sequence[Value]:
        return [bitwise(operation.builder, name, operation.operand(0), operation.operand(1))]

    return rule


def _not(operation: Operation) -> Sequence[Value]:
    return [bitwise_not(operation.builder, operation.operand(0))]


def _shift(operation: Operation) -> Sequence[Value]:
    direction = operation.text("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise operation.error(f"the direction `{direction}` is not known; use LEFT or RIGHT")
    return [shifted(operation.builder, operation.operand(0), operation.operand(1), left=direction == "LEFT")]


def _bit_cast(operation: Operation) -> Sequence[Value]:
    operand, type = operation.operand(0), operation.type_of(operation.integer("to"))
    if type.itemsize != operand.type.itemsize:
        raise operation.error(f"{operand.type} has {operand.type.itemsize} bytes, and {type} has {type.itemsize}")
    if type is ScalarType.BOOL:  # its bytes are 0 or 1
        return [pointwise(operation.builder, "to_bool", "{0} != 0", [operand], type)]
    return [operation.builder.reinterpret(operand, type)]


RULES: Final[dict[str, Rule]] = {
    "BitCast": _bit_cast,
    "BitShift": _shift,
    "BitwiseAnd": _bitwise("and"),
    "BitwiseNot": _not,
    "BitwiseOr": _bitwise("or"),
    "BitwiseXor": _bitwise("xor"),
}
