"""The types of C in which programs hold elements."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tc.base.types import ScalarType

# Others are called in C as here, with _t behind it.
_TYPES: Final[Mapping[ScalarType, str]] = MappingProxyType(
    {
        ScalarType.FLOAT32: "float",
        ScalarType.FLOAT64: "double",
        ScalarType.FLOAT16: "uint16_t",
        ScalarType.BFLOAT16: "uint16_t",
        ScalarType.FLOAT8_E4M3FN: "uint8_t",
        ScalarType.FLOAT8_E5M2: "uint8_t",
        ScalarType.BOOL: "uint8_t",
    }
)


def c_type(type: ScalarType) -> str:
    """The type of an element: its bits, where C has no such floats."""
    return _TYPES.get(type, f"{type}_t")
