"""Scalar types and their promotion, which follows NumPy 2 (literals, sizes and iterators are weak)."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final


class Kind(Enum):
    """What a scalar type holds."""

    BOOLEAN = "boolean"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOATING = "floating"


class ScalarType(Enum):
    """The element types of tensors; the value is the canonical name (and NumPy's, through ml_dtypes)."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"

    def __str__(self) -> str:
        return self.value

    @property
    def kind(self) -> Kind:
        """What values of the type are."""
        return _KIND[self]

    @property
    def is_floating(self) -> bool:
        """Whether values are floating-point numbers."""
        return self.kind is Kind.FLOATING

    @property
    def is_integer(self) -> bool:
        """Whether values are signed or unsigned integers; truth values are none."""
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def is_half(self) -> bool:
        """Floating point of sixteen or eight bits: computed and accumulated in float32, rounded when stored."""
        return self.is_floating and self.itemsize < 4

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEMSIZE[self]

    @property
    def minimum(self) -> int:
        """Least value of an integer or boolean type."""
        return -(1 << (8 * self.itemsize - 1)) if self.kind is Kind.SIGNED else 0

    @property
    def maximum(self) -> int:
        """Greatest value of an integer or boolean type."""
        if self is ScalarType.BOOL:
            return 1
        return int((1 << (8 * self.itemsize - (self.kind is Kind.SIGNED))) - 1)

    @property
    def unit_roundoff(self) -> float:
        """Half the distance from 1 to the next floating-point number; 0 for integers."""
        return _UNIT_ROUNDOFF.get(self, 0.0)

    @property
    def largest(self) -> float:
        """The largest finite number of a floating type."""
        return _LARGEST[self]

    @property
    def has_infinities(self) -> bool:
        """Whether the largest number of a floating type is followed by infinity, and not by NaN."""
        return self is not ScalarType.FLOAT8_E4M3FN

    @property
    def smallest_subnormal(self) -> float:
        """The absolute error of one operation whose result underflows; 0 for integers."""
        return _SMALLEST_SUBNORMAL.get(self, 0.0)


_KINDS_OF_NAMES: Final = (("bool", Kind.BOOLEAN), ("int", Kind.SIGNED), ("uint", Kind.UNSIGNED))
_KIND: Final = {
    t: next((kind for name, kind in _KINDS_OF_NAMES if t.value.startswith(name)), Kind.FLOATING) for t in ScalarType
}
_ITEMSIZE: Final = {
    t: 1 if bits is None else int(bits.group()) // 8
    for t, bits in ((t, re.search(r"\d+", t.value)) for t in ScalarType)
}
_UNIT_ROUNDOFF: Final = {
    ScalarType.FLOAT8_E4M3FN: 2.0**-4,
    ScalarType.FLOAT8_E5M2: 2.0**-3,
    ScalarType.FLOAT16: 2.0**-11,
    ScalarType.BFLOAT16: 2.0**-8,
    ScalarType.FLOAT32: 2.0**-24,
    ScalarType.FLOAT64: 2.0**-53,
}
_LARGEST: Final = {
    ScalarType.FLOAT8_E4M3FN: 448.0,
    ScalarType.FLOAT8_E5M2: 57344.0,
    ScalarType.FLOAT16: 65504.0,
    ScalarType.BFLOAT16: 255 * 2.0**120,
    ScalarType.FLOAT32: (2.0**24 - 1) * 2.0**104,
    ScalarType.FLOAT64: (2.0 - 2.0**-52) * 2.0**1023,
}
_SMALLEST_SUBNORMAL: Final = {
    ScalarType.FLOAT8_E4M3FN: 2.0**-9,
    ScalarType.FLOAT8_E5M2: 2.0**-16,
    ScalarType.FLOAT16: 2.0**-24,
    ScalarType.BFLOAT16: 2.0**-133,
    ScalarType.FLOAT32: 2.0**-149,
    ScalarType.FLOAT64: 2.0**-1074,
}

ALIASES: Final = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "byte": "uint8"}


def scalar_type(name: str) -> ScalarType | None:
    """The type called ``name`` in the language (canonical name or alias), or None."""
    try:
        return ScalarType(ALIASES.get(name, name))
    except ValueError:
        return None


def type_names() -> tuple[str, ...]:
    """Every type name of the language, canonical names and aliases."""
    return (*(t.value for t in ScalarType), *ALIASES)


def promote(left: ScalarType, right: ScalarType) -> ScalarType:
    """The common type of two operands, as ``numpy.promote_types`` (with ml_dtypes' bfloat16).

    NumPy has no common type for bfloat16 with float16 or with integers of 16 bits and more; there the
    smallest float type that holds the precision NumPy would ask of float16 is taken.
    """
    if left is right:
        return left
    if left is ScalarType.BOOL:
        return right
    if right is ScalarType.BOOL:
        return left
    if left.is_floating and right.is_floating:
        if left.itemsize == right.itemsize:
            return ScalarType.FLOAT32
        return max(left, right, key=lambda t: t.itemsize)
    if left.is_floating or right.is_floating:
        floating, integer = (left, right) if left.is_floating else (right, left)
        needed = float_of(integer)
        if needed is ScalarType.FLOAT16:
            return floating
        return promote(floating, needed)
    if left.kind is right.kind:
        return max(left, right, key=lambda t: t.itemsize)
    signed, unsigned = (left, right) if left.kind is Kind.SIGNED else (right, left)
    if signed.itemsize > unsigned.itemsize:
        return signed
    wider = 2 * unsigned.itemsize
    return ScalarType(f"int{8 * wider}") if wider <= 8 else ScalarType.FLOAT64


def float_of(operand: ScalarType) -> ScalarType:
    """The floating type in which a function such as ``exp`` computes an operand, as NumPy chooses it."""
    if operand.is_floating:
        return operand
    if operand.itemsize == 1:
        return ScalarType.FLOAT16
    return ScalarType.FLOAT32 if operand.itemsize == 2 else ScalarType.FLOAT64


def computation_type(stored: ScalarType) -> ScalarType:
    """The type in which values are computed and accumulated: halves in float32, the rest in themselves."""
    return ScalarType.FLOAT32 if stored.is_half else stored
