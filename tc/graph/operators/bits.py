"""Operators on the bits of integers, by arithmetic of unsigned integers: the language has no operators for bits.

Compilers turn quotients and remainders by powers of two into shifts and masks.
"""

from __future__ import annotations

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.texts import literal


def unsigned(builder: Builder, operand: Value) -> Value:
    """The operand, its bits read as unsigned integers."""
    return builder.reinterpret(operand, ScalarType(f"uint{8 * operand.type.itemsize}"))


def _common(type: ScalarType) -> str:
    """The bits that two numbers share."""
    bits = [
        "{0} / {power} % 2 * ({1} / {power} % 2) * {power}".replace("{power}", literal(1 << bit, type))
        for bit in range(8 * type.itemsize)
    ]
    return " + ".join(bits)


def bitwise(builder: Builder, name: str, left: Value, right: Value) -> Value:
    """``and``, ``or`` or ``xor`` of the bits of two integers of one type."""
    first, second = unsigned(builder, left), unsigned(builder, right)
    common = _common(first.type)
    formula = {"and": common, "or": f"{{0}} + {{1}} - ({common})", "xor": f"{{0}} + {{1}} - 2 * ({common})"}[name]
    return builder.reinterpret(pointwise(builder, f"bitwise_{name}", formula, [first, second], first.type), left.type)


def bitwise_not(builder: Builder, operand: Value) -> Value:
    """All bits of an integer, each of them the other way."""
    bits = unsigned(builder, operand)
    formula = f"{literal(bits.type.maximum, bits.type)} - {{0}}"
    return builder.reinterpret(pointwise(builder, "bitwise_not", formula, [bits], bits.type), operand.type)


def shifted(builder: Builder, operand: Value, distance: Value, *, left: bool) -> Value:
    """The bits moved to the left or to the right, where the sign of signed integers is repeated.

    A distance that is negative, or not less than the number of bits, leaves none of them.
    """
    bits, by = unsigned(builder, operand), unsigned(builder, distance)
    width = 8 * bits.type.itemsize
    powers = (1 << place for place in range(width.bit_length() - 1))
    power = " * ".join(f"({{1}} / {half} % 2 == 1 ? {literal(1 << half, bits.type)} : 1)" for half in powers)

    def moved(value: str) -> str:
        return f"({{1}} < {width} ? {value} {'*' if left else '/'} ({power}) : 0)"

    formula = moved("{0}")
    if not left and operand.type is not bits.type:
        ones = literal(bits.type.maximum, bits.type)
        formula = (
            f"{{0}} <= {literal(operand.type.maximum, bits.type)} ? {formula} : {ones} - {moved(f'({ones} - {{0}})')}"
        )
    name = "shift_left" if left else "shift_right"
    return builder.reinterpret(pointwise(builder, name, formula, [bits, by], bits.type), operand.type)
