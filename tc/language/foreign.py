"""Functions of other languages and frameworks, and how they are written here: for hints."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

_SUM: Final = "a statement that reduces: `s(i) +=! A(i,j)`"
_SOFTMAX: Final = (
    "four statements: `m(i) max=! x(i,j)  e(i,j) = exp(x(i,j) - m(i))  s(i) +=! e(i,j)  y(i,j) = e(i,j) / s(i)`"
)
_SIZE: Final = "the size by its name (`N`), or as `A.0`, the first one of `A`"
_CHOICE: Final = "`condition ? value : value`"

# By name in small letters: what to write instead.
FOREIGN: Final = MappingProxyType(
    {
        "relu": "`max(x, 0)`",
        "relu6": "`min(max(x, 0), 6)`",
        "leaky_relu": "`x > 0 ? x : 0.01 * x`",
        "elu": "`x > 0 ? x : expm1(x)`",
        "gelu": "`0.5 * x * (1 + erf(x * 0.7071067811865475))`",
        "silu": "`x / (1 + exp(-x))`",
        "swish": "`x / (1 + exp(-x))`",
        "sigmoid": "`1 / (1 + exp(-x))`",
        "softplus": "`log1p(exp(x))`",
        "softmax": _SOFTMAX,
        "clamp": "`min(max(x, low), high)`",
        "clip": "`min(max(x, low), high)`",
        "square": "`x * x`",
        "sqr": "`x * x`",
        "cube": "`x * x * x`",
        "power": "`pow(x, y)`",
        "reciprocal": "`1 / x`",
        "absolute": "`abs(x)`",
        "sign": "`x > 0 ? 1 : (x < 0 ? -1 : 0)`",
        "sgn": "`x > 0 ? 1 : (x < 0 ? -1 : 0)`",
        "maximum": "`max(x, y)`; the greatest of many is a reduction: `m(i) max=! A(i,j)`",
        "minimum": "`min(x, y)`; the least of many is a reduction: `m(i) min=! A(i,j)`",
        "amax": "a statement that reduces: `m(i) max=! A(i,j)`",
        "amin": "a statement that reduces: `m(i) min=! A(i,j)`",
        "sum": _SUM,
        "reduce_sum": _SUM,
        "mean": "two statements: `s(i) +=! A(i,j)  m(i) = s(i) / N`",
        "avg": "two statements: `s(i) +=! A(i,j)  m(i) = s(i) / N`",
        "var": "`v(i) +=! (A(i,j) - m(i)) * (A(i,j) - m(i))` behind the mean `m`, then divide by the size",
        "prod": "a statement that reduces: `p(i) *=! A(i,j)`",
        "dot": "a statement that reduces: `s +=! a(i) * b(i)`",
        "matmul": "a statement that reduces: `C(i,j) +=! A(i,k) * B(k,j)`",
        "einsum": "a statement that reduces: `C(i,j) +=! A(i,k) * B(k,j)`",
        "transpose": "the subscripts in another order: `B(i,j) = A(j,i)`",
        "arcsin": "`asin(x)`",
        "arccos": "`acos(x)`",
        "arctan": "`atan(x)`",
        "arctan2": "`atan2(y, x)`",
        "ln": "`log(x)`",
        "mod": "`x % y`",
        "where": _CHOICE,
        "select": _CHOICE,
        "if": _CHOICE,
        "not": "`!x`",
        "and": "`x && y`",
        "or": "`x || y`",
        "len": _SIZE,
        "size": _SIZE,
        "shape": _SIZE,
        "cast": "the type like a function: `float32(x)`",
        "astype": "the type like a function: `float32(x)`",
        "rand": "an argument: there are no random numbers",
        "randn": "an argument: there are no random numbers",
    }
)

# The types of other languages.
TYPES: Final = MappingProxyType(
    {
        "fp16": "float16", "f16": "float16", "fp32": "float32", "f32": "float32", "fp64": "float64", "f64": "float64",
        "bf16": "bfloat16", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
        "u16": "uint16", "u32": "uint32", "u64": "uint64", "long": "int64", "short": "int16", "char": "int8",
        "unsigned": "uint32", "uint": "uint32", "boolean": "bool", "integer": "int32", "real": "float32",
        "single": "float32", "tensor": "float32", "float8": "float16", "int4": "int8", "uint4": "uint8",
    }
)  # fmt: skip
