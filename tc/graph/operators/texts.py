"""Pieces of comprehension texts: iterators, sizes, parameters of tensors of any rank."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tc.base.types import ScalarType, computation_type
from tc.graph.ir.values import Value

# What parameters are called, in order.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def iterators(rank: int, letter: str = "i") -> list[str]:
    """As in ``i0``, ``i1``."""
    return [f"{letter}{axis}" for axis in range(rank)]


def sizes(rank: int, letter: str = "D") -> list[str]:
    """As in ``D0``, ``D1``."""
    return iterators(rank, letter)


def parameter(type: ScalarType, extents: Iterable[object], name: str) -> str:
    """As in ``float32(D0,D1) A``."""
    return f"{type}({','.join(map(str, extents))}) {name}"


def access(name: str, subscripts: Iterable[object]) -> str:
    """As in ``A(i0, i1)``; without subscripts, the name alone."""
    found = ", ".join(map(str, subscripts))
    return f"{name}({found})" if found else name


def definition(name: str, parameters: Sequence[str], results: Sequence[str], statements: Sequence[str]) -> str:
    """The text of a definition, a statement a line."""
    body = "".join(f"    {statement}\n" for statement in statements)
    return f"def {name}({', '.join(parameters)}) -> ({', '.join(results)}) {{\n{body}}}"


def literal(value: float, type: ScalarType) -> str:
    """A number of a type, as an expression that has exactly its value."""
    if type is ScalarType.BOOL:
        return "bool(1)" if value else "bool(0)"
    if type.is_integer:
        whole = int(value)
        if whole == -(2**63):
            return "(-9223372036854775807 - 1)"
        return f"{type}({whole})"
    if math.isnan(value):
        return f"{type}(0.0 / 0.0)"
    if math.isinf(value):
        return f"{type}({'-' if value < 0 else ''}1.0 / 0.0)"
    return f"{type}({float(value)!r})"


def declared(value: Value, name: str, letter: str = "D") -> str:
    """The parameter of a value whose extents are all sizes of their own."""
    return parameter(value.type, sizes(len(value.shape), letter), name)


def widened(element: str, type: ScalarType) -> str:
    """An element in the type in which it is computed, so that nothing in between is rounded to a half."""
    return f"{computation_type(type)}({element})" if type.is_half else element
