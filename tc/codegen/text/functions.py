"""Where each builtin function of the language comes from: the library of a dialect, or ``numerics.h``."""

from __future__ import annotations

from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType, computation_type
from tc.language.program.functions import FUNCTIONS


@frozen
class Library:
    """The functions that come with a dialect; ``but_in_float32``: those of them that do not for float32."""

    functions: frozenset[str]
    but_in_float32: frozenset[str] = frozenset()


_OF_C: Final = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erfc",
    "exp", "exp2", "expm1", "fabs", "floor", "fma", "fmod", "hypot", "j0", "j1", "log", "log10", "log1p", "log2",
    "logb", "nextafter", "pow", "remainder", "round", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc", "y0",
    "y1",
})  # fmt: skip
# Of the library's, what OpenCL C lacks (specification 3.0, 6.15.2).
ABSENT_IN_OPENCL: Final = frozenset({"j0", "j1", "y0", "y1"})
# What the library has too, but for float32 not in lanes, or with other bits in lanes than in scalars.
C_LIBRARY: Final = Library(_OF_C, but_in_float32=frozenset({"exp", "expm1", "fmod", "log", "log1p", "tan", "tanh"}))
# OpenCL C has a remainder of its own, which GPUs compute with float32 alone.
OPENCL_LIBRARY: Final = Library(_OF_C, C_LIBRARY.but_in_float32 - {"fmod"})
# The language has CUDA's names.  The errors that CUDA states (CUDA C++ Programming Guide, Mathematical Functions) are
# within the bounds of ``tc.language.program.functions``, but for Bessel functions of doubles beyond 8, which are 5e-12
# off. Minima and maxima propagate NaN, and CUDA has no ``fdivide`` of doubles.
CUDA_LIBRARY: Final = Library(frozenset(FUNCTIONS) - {"abs", "fdivide", "max", "min"})


def function_name(function: str, type: ScalarType, library: Library) -> str:
    """The function that computes a builtin, given by its canonical name, on operands of a type."""
    if type.is_half and function == "nextafter":
        return f"tc_nextafter_{type}"
    type = computation_type(type)
    if type.is_floating and function == "abs":
        function = "fabs"
    if function not in library.functions or (type is ScalarType.FLOAT32 and function in library.but_in_float32):
        return f"tc_{function}_{type}"
    return function if type is ScalarType.FLOAT64 else f"{function}f"
