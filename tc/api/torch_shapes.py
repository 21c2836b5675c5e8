"""Shapes of results from the shapes of arguments, also where PyTorch knows these as symbols only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import (
    Binary,
    Call,
    Expression,
    Literal,
    Program,
    ScalarReference,
    SizeReference,
)

# An integer, or one that PyTorch knows as a symbol.
Size: TypeAlias = Any


def result_shapes(program: Program, arguments: Mapping[str, Any]) -> list[tuple[Size, ...]] | None:
    """Of each result; None where an extent is no arithmetic on sizes.  ``arguments``: tensors and numbers by name."""
    values: dict[Expression, Size] = {}
    for tensor in program.tensors:
        if tensor.name in arguments:
            pairs = zip(tensor.shape, arguments[tensor.name].shape, strict=True)
            values |= {extent: size for extent, size in pairs if isinstance(extent, SizeReference)}
    for scalar in program.scalars:
        values[ScalarReference(scalar.name, scalar.type)] = arguments[scalar.name]
    try:
        return [tuple(_size(extent, values) for extent in program.tensor(name).shape) for name in program.results]
    except KeyError:
        return None


def _size(extent: Expression, values: Mapping[Expression, Size]) -> Size:
    """KeyError for what has no value."""
    match extent:
        case Literal(value):
            return int(value)
        case SizeReference() | ScalarReference():
            return values[extent]
        case Binary(operator, left, right):
            return _combined(operator, _size(left, values), _size(right, values))
        case Call("max" | "min" as name, arguments):
            return _extreme(name, [_size(argument, values) for argument in arguments])
        case _:
            raise KeyError(extent)


def _combined(operator: BinaryOperator, left: Size, right: Size) -> Size:
    match operator:
        case BinaryOperator.ADD:
            return left + right
        case BinaryOperator.SUBTRACT:
            return left - right
        case BinaryOperator.MULTIPLY:
            return left * right
        case BinaryOperator.DIVIDE:
            if not (isinstance(right, int) and right > 0):
                raise KeyError(operator)
            # Divisions of the language round towards zero.
            return left // right if left >= 0 else -(-left // right)
        case _:
            raise KeyError(operator)


def _extreme(name: str, sizes: Sequence[Size]) -> Size:
    found = sizes[0]
    for size in sizes[1:]:
        combine: Callable[[Size, Size], Size] = torch.sym_max if name == "max" else torch.sym_min
        found = combine(found, size)
    return found
