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
        "average": "two statements: `s(i) +=! A(i,j)  m(i) = s(i) / N`",
        "variance": "`v(i) +=! (A(i,j) - m(i)) * (A(i,j) - m(i))` behind the mean `m`, then divide by the size",
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
        "exists": "`exists A(i)`, without parentheses around the access",
        "std": "the square root of the variance: `sqrt(v(i))`",
        "argmax": "`m(i) max=! A(i,j)`, then compare with `m(i)`: indices are no results of reductions",
        "argmin": "`m(i) min=! A(i,j)`, then compare with `m(i)`: indices are no results of reductions",
        "norm": "`n(i) +=! A(i,j) * A(i,j)`, and `sqrt(n(i))` where it is used",
        "step": "`x > 0 ? 1 : 0`",
        "heaviside": "`x > 0 ? 1 : 0`",
        "arange": "the index itself: `B(i) = i where i in 0:N`",
        "iota": "the index itself: `B(i) = i where i in 0:N`",
        "range": "the index itself: `B(i) = i where i in 0:N`",
        "zeros": "the number: `B(i) = 0 where i in 0:N`",
        "ones": "the number: `B(i) = 1 where i in 0:N`",
        "full": "the number: `B(i) = 1 where i in 0:N`",
        "eye": "`B(i,j) = i == j ? 1 : 0 where i in 0:N, j in 0:N`",
        "tril": "`j <= i ? A(i,j) : 0`",
        "triu": "`j >= i ? A(i,j) : 0`",
        "cumsum": "a triangular reduction: `c(i) +=! x(j) where i in 0:N, j in 0:i+1`",
        "concat": "two statements: `O(i) = A(i)  O(i + M) = B(i)`",
        "cat": "two statements: `O(i) = A(i)  O(i + M) = B(i)`",
        "reshape": "the subscripts that you want: `B(i) = A(i / 4, i % 4) where i in 0:N`",
        "any": "a reduction: `r(i) max=! A(i,j) > 0`",
        "all": "a reduction: `r(i) min=! A(i,j) > 0`",
        "div": "`x / y`, which truncates for integers",
        "tan_h": "`tanh(x)`",
        "isnan": "`x != x`",
        "isinf": "`abs(x) == 1.0 / 0.0`",
        "switch": _CHOICE,
        "iif": _CHOICE,
        "ifelse": _CHOICE,
        "static_cast": "the type like a function: `float32(x)`",
        "let": "`where x = ...`: a name needs no word before it",
        "print": "nothing: `f.reference` and `TC_DUMP` show what is computed",
        "rand": "an argument: there are no random numbers",
        "randn": "an argument: there are no random numbers",
    }
)

_TRUE: Final = "`1 > 0`, or the condition itself"
_FALSE: Final = "`1 < 0`, or the condition itself"
_INFINITY: Final = "`1.0 / 0.0`; an empty `min=!` gives it, too"
_NAN: Final = "`0.0 / 0.0`"
_NOTHING: Final = "a value: every element of a tensor has one"
_EPSILON: Final = "the number, for example `1e-5`, or declare `float eps` among the parameters"

# By name in small letters: what to write instead of a constant.
CONSTANTS: Final = MappingProxyType(
    {
        **dict.fromkeys(("pi", "m_pi"), "the number: `3.141592653589793`"),
        **dict.fromkeys(("e", "m_e"), "the number: `2.718281828459045`, or `exp(x)`"),
        **dict.fromkeys(("inf", "infinity", "infty", "huge_val"), _INFINITY),
        **dict.fromkeys(("nan",), _NAN),
        **dict.fromkeys(("true",), _TRUE),
        **dict.fromkeys(("false",), _FALSE),
        **dict.fromkeys(("null", "none", "nullptr", "nil", "undefined"), _NOTHING),
        **dict.fromkeys(("flt_max", "dbl_max"), "the number: `3.4028234663852886e38`"),
        **dict.fromkeys(("eps", "epsilon", "flt_epsilon"), _EPSILON),
        **dict.fromkeys(("zeros", "zero"), "`0`"),
        **dict.fromkeys(("ones", "one"), "`1`"),
    }
)

# The types of other languages.
TYPES: Final = MappingProxyType(
    {
        "fp16": "float16", "f16": "float16", "fp32": "float32", "f32": "float32", "fp64": "float64", "f64": "float64",
        "bf16": "bfloat16", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
        "u16": "uint16", "u32": "uint32", "u64": "uint64", "long": "int64", "short": "int16", "char": "int8",
        "unsigned": "uint32", "uint": "uint32", "boolean": "bool", "integer": "int32", "real": "float32",
        "single": "float32", "tensor": "float32", "float8": "float8_e4m3fn", "int4": "int8", "uint4": "uint8",
    }
)  # fmt: skip
