"""The types that numbers are computed in, and how they become integers."""

from __future__ import annotations

from tc.base.types import ScalarType


def real_type(type: ScalarType) -> ScalarType:
    """The type of positions, weights and means of elements of a type; integers of many bits take a wide one."""
    wide = type is ScalarType.FLOAT64 or (not type.is_floating and type.itemsize > 2)
    return ScalarType.FLOAT64 if wide else ScalarType.FLOAT32


def rounded(value: str, type: ScalarType) -> tuple[str, str]:
    """The nearest integer of a type, the even one of two, and the clause that it needs behind ``where``.

    What is out of range is the least or the greatest number.
    """
    return f"{type}({NEAREST})", f"v = {value}, r = round(v)"


# The integer that is nearest to `v`, the even one of two, where `r` is `round(v)`.
NEAREST = "abs(r - v) == 0.5 ? 2 * round(v / 2) : r"
