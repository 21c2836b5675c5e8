"""Where each builtin function of the language comes from: the C library, or ``numerics.h``."""

from __future__ import annotations

from typing import Final

from tc.types import ScalarType, computation_type

_LIBRARY: Final = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erfc",
    "exp", "exp2", "expm1", "fabs", "floor", "fma", "fmod", "hypot", "j0", "j1", "log", "log10", "log1p", "log2",
    "logb", "nextafter", "pow", "remainder", "round", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc", "y0",
    "y1",
})  # fmt: skip
# Of the library's, what OpenCL C lacks (specification 3.0, 6.15.2).
ABSENT_IN_OPENCL: Final = frozenset({"j0", "j1", "y0", "y1"})
# What the library has too, but for float32 not in lanes, or with other bits in lanes than in scalars.
_OWN_IN_FLOAT32: Final = frozenset({"exp", "tan", "tanh"})


def function_name(function: str, type: ScalarType) -> str:
    """The C function that computes a builtin, given by its canonical name, on operands of a type."""
    if type.is_half and function == "nextafter":
        return f"tc_nextafter_{type}"
    type = computation_type(type)
    if type.is_floating and function == "abs":
        function = "fabs"
    if function not in _LIBRARY or (type is ScalarType.FLOAT32 and function in _OWN_IN_FLOAT32):
        return f"tc_{function}_{type}"
    return function if type is ScalarType.FLOAT64 else f"{function}f"
