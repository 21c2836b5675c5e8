"""Literals of every scalar type as C text, exact to the last bit."""

from __future__ import annotations

import math
from typing import assert_never

from tc.base.rounding import round_to
from tc.base.types import Kind, ScalarType
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, Precedence, cast, named, prefix
from tc.language.program.program import Literal

# Up to this many characters a decimal is easier to read than a hexadecimal float; both are exact.
_READABLE = 8


def literal_fragment(literal: Literal, dialect: Dialect) -> Fragment:
    """The literal, of the type in which ``dialect`` computes its type."""
    match literal.type.kind:
        case Kind.BOOLEAN:
            return Fragment("true" if literal.value else "false")
        case Kind.SIGNED | Kind.UNSIGNED:
            bare = bare_integer(literal)
            return bare if literal.type.itemsize == 4 else cast(dialect.values[literal.type], bare)
        case Kind.FLOATING:
            return _floating(float(literal.value), literal.type)
        case _:
            assert_never(literal.type.kind)


def bare_integer(literal: Literal) -> Fragment:
    """An integer literal without a cast to its type: right beside an operand that has the type."""
    value, type = int(literal.value), literal.type
    if type.kind is Kind.SIGNED and type.itemsize >= 4 and value == type.minimum:
        return named(f"INT{8 * type.itemsize}_MIN")  # C has no negative literals, so this one cannot be spelled
    suffix = "u" if type.kind is Kind.UNSIGNED and type.itemsize >= 4 else ""
    return Fragment(f"{value}{suffix}", Precedence.PREFIX if value < 0 else Precedence.POSTFIX)


def _floating(value: float, type: ScalarType) -> Fragment:
    # What minima and maxima begin with is infinite in all types: they are computed in float32.
    rounded = value if math.isinf(value) else round_to(value, type)
    suffix = "" if type is ScalarType.FLOAT64 else "f"
    if math.isnan(rounded):
        return named("NAN")
    negative = math.copysign(1.0, rounded) < 0
    magnitude = abs(rounded)
    if math.isinf(magnitude):
        own = named("INFINITY")
    else:
        decimal = repr(magnitude)
        own = Fragment((decimal if len(decimal) <= _READABLE else magnitude.hex()) + suffix)
    return prefix("-", own) if negative else own
