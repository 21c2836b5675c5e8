"""Values of one scalar type as values of another one, and elements of memory as values.

Halves are floats while they are computed with.
"""

from __future__ import annotations

from tc.base.types import ScalarType, computation_type
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, call, cast, infix


def loaded(location: Fragment, type: ScalarType) -> Fragment:
    """The value of an element in memory."""
    if type is ScalarType.BOOL:
        return infix("!=", location, Fragment("0"))
    if type.is_half:
        return call(f"tc_float32_from_{type}", location)
    return location


def converted(value: Fragment, source: ScalarType, target: ScalarType, dialect: Dialect) -> Fragment:
    """A value of type ``source`` as one of type ``target``."""
    if target is ScalarType.BOOL:
        return value if source is ScalarType.BOOL else infix("!=", value, Fragment("0"))
    if target.is_half:
        return loaded(narrowed(value, source, target, dialect), target)
    source = computation_type(source)
    if source is target:
        return value
    if source.is_floating and target.is_integer:
        return call(f"tc_{target}_from_{source}", value)
    return cast(dialect.values[target], value)


def narrowed(value: Fragment, source: ScalarType, target: ScalarType, dialect: Dialect) -> Fragment:
    """A value of type ``source`` rounded once, to the nearest half."""
    source = computation_type(source)
    if source.is_floating:
        return call(f"tc_{target}_from_{source}", value)
    exact = ScalarType.FLOAT32 if source.itemsize < 4 else ScalarType.FLOAT64
    return call(f"tc_{target}_from_{exact}", cast(dialect.values[exact], value))


def has_own_arithmetic(type: ScalarType) -> bool:
    """Whether C computes the type in itself; narrower ones are promoted to int, so results must be cast back."""
    return type.is_floating or type.itemsize >= 4
