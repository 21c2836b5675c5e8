"""Sums of products as matrix multiplications: the fast way through reductions without conditions.

It is taken only where every value is finite and nothing can overflow, so that its bound is one formula; the
general way gives the same answer for everything else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tc.base.types import computation_type
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, Expression
from tc.reference.access import extents
from tc.reference.accumulate import FloatSum, growth
from tc.reference.bounded import (
    SMALLEST_NORMAL,
    Bounded,
    FloatArray,
    may_be_flushed,
    overflow_threshold,
    roundoff,
)
from tc.reference.placement import Placement


def largest_intermediate(factors: Sequence[frozenset[int]], kept: frozenset[int], shape: tuple[int, ...]) -> int:
    """The most elements that an operand, an intermediate or the result of ``contract`` holds."""
    operands = list(factors)
    largest = max(_size(dimensions, shape) for dimensions in (*operands, kept))
    while len(operands) > 1:
        first, second = _cheapest_pair(operands, kept, shape)
        merged = _merged(operands, first, second, kept)
        operands = [d for p, d in enumerate(operands) if p not in (first, second)] + [merged]
        largest = max(largest, _size(merged, shape))
    return largest


def contract(factors: Sequence[FloatArray], kept: frozenset[int], shape: tuple[int, ...]) -> FloatArray:
    """Sum, over the dimensions that are not kept, of the product of the factors (open grids over ``shape``).

    The result is an open grid with size 1 along the dimensions summed over.
    """
    operands = list(factors)
    dimensions = [frozenset(p for p, n in enumerate(f.shape) if n != 1) for f in operands]
    absent = math.prod(n for p, n in enumerate(shape) if p not in kept and all(p not in d for d in dimensions))
    while len(operands) > 1:
        first, second = _cheapest_pair(dimensions, kept, shape)
        merged = _merged(dimensions, first, second, kept)
        product = _pair(operands[first], operands[second], merged)
        operands = [o for p, o in enumerate(operands) if p not in (first, second)] + [product]
        dimensions = [d for p, d in enumerate(dimensions) if p not in (first, second)] + [merged]
    total = operands[0].sum(axis=tuple(dimensions[0] - kept), keepdims=True)
    return np.asarray(total * float(absent))


def _size(dimensions: frozenset[int], shape: tuple[int, ...]) -> int:
    return math.prod(shape[p] for p in dimensions)


def _merged(operands: Sequence[frozenset[int]], first: int, second: int, kept: frozenset[int]) -> frozenset[int]:
    """The dimensions of the product of two operands that anybody still needs."""
    needed = kept.union(*(d for p, d in enumerate(operands) if p not in (first, second)))
    return (operands[first] | operands[second]) & needed


def _cheapest_pair(operands: Sequence[frozenset[int]], kept: frozenset[int], shape: tuple[int, ...]) -> tuple[int, int]:
    pairs = combinations(range(len(operands)), 2)
    return min(pairs, key=lambda pair: _size(_merged(operands, pair[0], pair[1], kept), shape))


def _pair(left: FloatArray, right: FloatArray, result: frozenset[int]) -> FloatArray:
    """The product of two operands, summed over the dimensions that are not in ``result``: one batched matmul."""
    left_dims = frozenset(p for p, n in enumerate(left.shape) if n != 1)
    right_dims = frozenset(p for p, n in enumerate(right.shape) if n != 1)
    left = left.sum(axis=tuple(left_dims - right_dims - result), keepdims=True)
    right = right.sum(axis=tuple(right_dims - left_dims - result), keepdims=True)
    batch = sorted(left_dims & right_dims & result)
    summed = sorted((left_dims & right_dims) - result)
    rows, columns = sorted((left_dims - right_dims) & result), sorted((right_dims - left_dims) & result)
    if not rows and not columns:
        return np.asarray((left * right).sum(axis=tuple(summed), keepdims=True))
    first = _matrix(left, batch, rows, summed)
    second = _matrix(right, batch, summed, columns)
    order = batch + rows + columns
    sizes = {p: max(left.shape[p], right.shape[p]) for p in order}
    product = np.matmul(first, second).reshape([sizes[p] for p in order])
    rest = [p for p in range(left.ndim) if p not in order]
    product = product.reshape(product.shape + (1,) * len(rest))
    return np.transpose(product, np.argsort(order + rest))


def _matrix(operand: FloatArray, batch: list[int], rows: list[int], columns: list[int]) -> FloatArray:
    """The operand as a stack of matrices; dimensions in none of the lists have size 1."""
    rest = [p for p in range(operand.ndim) if p not in batch + rows + columns]
    shape = operand.shape
    groups = (batch, rows, columns)
    return np.transpose(operand, batch + rows + columns + rest).reshape(
        [math.prod(shape[p] for p in g) for g in groups]
    )


def absorb_product(total: FloatSum, factors: Sequence[Bounded], place: Placement) -> bool:
    """Adds the products of the factors over one box to the sum; False, and nothing done, where it cannot.

    The factors are settled open grids, the placement has a strided view and no mask.
    """
    reaches = [np.abs(f.value) + f.error for f in factors]
    type, computed = total.type, computation_type(total.type)
    shape, kept = extents(place.frame.box), place.kept
    terms = math.prod(n for p, n in enumerate(shape) if p not in kept)
    highest = float(np.prod([np.maximum(reach.max(), 1.0) for reach in reaches]))
    limit = min(overflow_threshold(type), overflow_threshold(computed) / (2.0 * terms), 1e300)
    if not highest < limit:  # NaN included
        return False
    value = contract([f.value for f in factors], kept, shape)
    upper = contract(reaches, kept, shape)
    lower, propagated = upper, np.zeros(())
    if not all(f.is_exact for f in factors):
        lower = contract([np.abs(f.value) for f in factors], kept, shape)
        noise = 4.0 * growth(np.asarray(float(terms)), 2.0**-53) * upper  # both were rounded before they cancel
        propagated = upper - lower + noise
    # Each product is rounded, and may underflow; the additions are accounted for by the sum.
    roundings = np.asarray(float(len(factors) - 1))
    underflow = terms * roundings * type.smallest_subnormal * (1.0 if len(factors) == 2 else highest)
    error = propagated + growth(roundings, roundoff(type)) * upper + np.where(upper == 0, 0.0, underflow)
    if total.instructions:
        error = error + np.where(upper == 0, 0.0, _flushed(factors, kept, shape) + terms * SMALLEST_NORMAL)
    place.fold_reduced(np.add, total.total, value)
    place.fold_reduced(np.add, total.magnitude, lower)
    place.fold_reduced(np.add, total.error, error)
    place.fold_reduced(np.add, total.count, np.asarray(float(terms)))
    if any(f.ambiguous.any() for f in factors):
        sound = contract([np.where(f.ambiguous, 0.0, np.ones(f.value.shape)) for f in factors], kept, shape)
        total.ambiguous.mark(sound < terms - 0.5, place)
    return True


def _flushed(factors: Sequence[Bounded], kept: frozenset[int], shape: tuple[int, ...]) -> FloatArray:
    """The products of factors of which one may be taken for zero, since it is subnormal in float32."""
    reaches = [np.abs(f.value) + f.error for f in factors]
    subnormal = [np.where(may_be_flushed(f), reach, 0.0) for f, reach in zip(factors, reaches, strict=True)]
    found = np.zeros(())
    for n, own in enumerate(subnormal):
        if own.any():
            found = found + contract([own if m == n else reach for m, reach in enumerate(reaches)], kept, shape)
    return found


def as_grid(operand: Bounded, dimensions: int) -> Bounded:
    """A constant as an open grid."""
    if operand.value.ndim:
        return operand
    return Bounded(operand.value.reshape((1,) * dimensions), operand.error, operand.ambiguous)


def factors_of(expression: Expression) -> tuple[Expression, ...]:
    """The operands of a product of products."""
    match expression:
        case Binary(BinaryOperator.MULTIPLY, left, right):
            return (*factors_of(left), *factors_of(right))
        case _:
            return (expression,)
