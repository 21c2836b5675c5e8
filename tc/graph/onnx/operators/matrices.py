"""Matrices and vectors made by formulas, and what takes matrices apart: triangles, determinants, sums of products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tc.graph.ir.sizes import Dimension, Size
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.einsum import einsum, equation_of
from tc.graph.operators.matrices import counted, determinant, identity_like, tiled, triangle


def _range(operation: Operation) -> Sequence[Value]:
    start, limit, step = (operation.operand(place) for place in range(3))
    if start.type.is_floating:
        first, end, width = (float(operation.contents(value).reshape(())[()]) for value in (start, limit, step))
        if width == 0 or not math.isfinite((end - first) / width):
            raise operation.error(f"there is no range from {first} to {end} by steps of {width}")
        count: Dimension = max(math.ceil((end - first) / width), 0)
    else:
        count = _count(operation, *(operation.sizes(value)[0] for value in (start, limit, step)))
    builder = operation.builder
    return [counted(builder, builder.reshape(start, ()), builder.reshape(step, ()), count)]


def _count(operation: Operation, start: Dimension, limit: Dimension, step: Dimension) -> Dimension:
    """How many integers there are from the first to the limit, which is left out."""
    if isinstance(step, Size) or step == 0:
        raise operation.error(f"there is no range from {start} to {limit} by steps of {step}")
    distance, width = (limit - start, step) if step > 0 else (start - limit, -step)
    count = (distance + width - 1) // width
    return max(count, 0) if isinstance(count, int) else count


def _identity_like(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    if len(operand.shape) != 2:
        raise operation.error(f"EyeLike takes a matrix, got {len(operand.shape)} dimensions")
    type = operation.type_of(operation.integer("dtype")) if "dtype" in operation.attributes else operand.type
    return [identity_like(operation.builder, operand, operation.integer("k", 0), type)]


def _triangle(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    if len(operand.shape) < 2:
        raise operation.error(f"Trilu takes matrices, got {len(operand.shape)} dimensions")
    upper = bool(operation.integer("upper", 1))
    return [triangle(operation.builder, operand, operation.optional(1) or 0, upper=upper)]


def _tile(operation: Operation) -> Sequence[Value]:
    operand, repeats = operation.operand(0), operation.sizes(operation.operand(1))
    if len(repeats) != len(operand.shape):
        raise operation.error(f"{len(repeats)} repeats for {len(operand.shape)} dimensions; give one for each")
    return [tiled(operation.builder, operand, repeats)]


def _determinant(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    rows, columns = operand.shape[-2:] if len(operand.shape) > 1 else (0, 1)
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise operation.error("Det takes square matrices, in the last two dimensions")
    return [determinant(operation.builder, operand)]


def _einsum(operation: Operation) -> Sequence[Value]:
    operands = [operation.operand(place) for place in range(len(operation.operands))]
    ranks = [len(operand.shape) for operand in operands]
    equation = equation_of(operation.text("equation"), ranks, operation.builder.origin)
    return [einsum(operation.builder, equation, operands)]


RULES: Final[dict[str, Rule]] = {
    "Det": _determinant,
    "Einsum": _einsum,
    "EyeLike": _identity_like,
    "Range": _range,
    "Tile": _tile,
    "Trilu": _triangle,
}
