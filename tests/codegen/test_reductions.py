"""Reductions: partial results in local variables and lanes give what memory would, NaN included."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
import pytest

from tc.codegen.source import c_source
from tc.language.program import IteratorReference, Reduction
from tc.polyhedral.loops import (
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    StatementBody,
)
from tc.types import ScalarType
from tests.codegen.build import binary, buffer, instance, loops, operation, read
from tests.codegen.harness import Array, dtype_of, run

ROWS, COLUMNS = 5, 129
UFUNCS: Final = {
    Reduction.ADD: np.add,
    Reduction.MULTIPLY: np.multiply,
    Reduction.MINIMUM: np.minimum,
    Reduction.MAXIMUM: np.maximum,
}


def nest(*sizes: int | IndexExpression, kind: LoopKind = LoopKind.REDUCTION) -> Callable[[LoopTree], LoopTree]:
    """Loops j0, j1.. from 0; a size that is an expression is the greatest value itself."""

    def around(inside: LoopTree) -> LoopTree:
        for position, size in reversed(tuple(enumerate(sizes))):
            upper = IndexLiteral(size - 1) if isinstance(size, int) else size
            inside = Loop(f"j{position}", IndexLiteral(0), upper, 1, kind, inside)
        return inside

    return around


def reduce_rows(
    x: Array, y: Array, reduction: Reduction, around: Callable[[LoopTree], LoopTree], column: IndexExpression
) -> LoopProgram:
    """Runs ``y(i) reduction= x(i, j)`` in place, with the loops of ``around`` and ``j`` at ``column``."""
    type = ScalarType(x.dtype.name)
    body = StatementBody("S0", ("i", "j"), "y", (IteratorReference("i"),), reduction, read("x", type, "i", "j"))
    root = loops([("i0", len(x), LoopKind.PARALLEL)], around(instance("S0", "i0", column)))
    buffers = (buffer("x", type, *x.shape), buffer("y", type, *y.shape, writable=True))
    program = LoopProgram("rows", buffers, (), (), (body,), root, checked=True)
    assert run(program, {"x": x, "y": y}) == 0
    return program


@pytest.mark.parametrize("type", ScalarType, ids=str)
@pytest.mark.parametrize("reduction", Reduction)
def test_reduction_over_one_loop(type: ScalarType, reduction: Reduction) -> None:
    random = np.random.default_rng(0)
    # Small enough that every partial result of the floating types is exact, in any order.
    choices = (1, 1, 1, 2) if reduction is Reduction.MULTIPLY and type.is_floating else (0, 1, 2, 3, 100)
    columns = 9 if type.is_half else COLUMNS
    x = random.choice(choices, (ROWS, columns)).astype(dtype_of(type))
    start = random.choice(choices, ROWS).astype(dtype_of(type))
    y = start.copy()
    program = reduce_rows(x, y, reduction, nest(columns), IndexVariable("j0"))
    assert "accumulator" in c_source(program).text
    exact = x.astype(np.float64) if type.is_half else x
    expected = UFUNCS[reduction].reduce(np.column_stack([start.astype(exact.dtype), exact]), axis=1, dtype=exact.dtype)
    np.testing.assert_array_equal(y.astype(exact.dtype), expected)


TILE = operation(
    IndexOperator.MINIMUM,
    15,
    operation(IndexOperator.SUBTRACT, COLUMNS - 1, operation(IndexOperator.MULTIPLY, 16, "j0")),
)
TILED = operation(IndexOperator.ADD, operation(IndexOperator.MULTIPLY, 16, "j0"), "j1")


def test_nested_loops_share_one_accumulator() -> None:
    """Tiles of 16, the last one cut: constants alone show that no tile is empty."""
    x = np.arange(ROWS * COLUMNS, dtype=np.float64).reshape(ROWS, COLUMNS)
    y = np.ones(ROWS)
    program = reduce_rows(x, y, Reduction.ADD, nest(9, TILE), TILED)
    np.testing.assert_array_equal(y, 1 + x.sum(axis=1))
    text = c_source(program).text
    assert text.count("double accumulator = t_y[i_i];") == 1
    assert "reached" not in text


@pytest.mark.parametrize("reduction", Reduction)
@pytest.mark.parametrize("type", [ScalarType.FLOAT32, ScalarType.INT16, ScalarType.BOOL, ScalarType.BFLOAT16], ids=str)
def test_an_element_that_no_instance_reaches_is_left_alone(type: ScalarType, reduction: Reduction) -> None:
    """Only columns before the row's number count; row 0 has none, and its element must not be written."""
    x = np.ones((ROWS, COLUMNS), dtype_of(type))
    y = np.array([1, 0, 1, 0, 1], dtype_of(type))
    condition = operation(IndexOperator.LESS, "j0", "i0")

    def guarded(inside: LoopTree) -> LoopTree:
        return nest(COLUMNS)(Guard(condition, inside, None))

    expected = y.copy()
    for row in range(ROWS):
        for _ in range(row):
            expected[row] = UFUNCS[reduction](expected[row], x[row, 0])
    program = reduce_rows(x, y, reduction, guarded, IndexVariable("j0"))
    np.testing.assert_array_equal(y.astype(np.float64), expected.astype(np.float64))
    assert "if (reached)" in c_source(program).text


@pytest.mark.parametrize("reduction", [Reduction.MINIMUM, Reduction.MAXIMUM])
@pytest.mark.parametrize("type", [ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.FLOAT16], ids=str)
def test_minimum_and_maximum_propagate_nan_from_any_lane(type: ScalarType, reduction: Reduction) -> None:
    """Row r holds a NaN in column r; the last rows hold none, or start with one."""
    x = np.random.default_rng(0).standard_normal((COLUMNS + 2, COLUMNS)).astype(dtype_of(type))
    x[range(COLUMNS), range(COLUMNS)] = math.nan
    y = np.zeros(COLUMNS + 2, dtype_of(type))
    y[-1] = math.nan
    expected = UFUNCS[reduction](y, UFUNCS[reduction].reduce(x, axis=1))
    reduce_rows(x, y, reduction, nest(COLUMNS), IndexVariable("j0"))
    np.testing.assert_array_equal(y, expected)


def test_a_statement_that_reads_its_target_reduces_in_memory() -> None:
    """``y(i) += y(i) * x(i, j)`` needs each partial result where it reads it."""
    type = ScalarType.FLOAT64
    x, y = np.full((ROWS, 3), 2.0), np.ones(ROWS)
    value = binary("*", read("y", type, "i"), read("x", type, "i", "j"))
    body = StatementBody("S0", ("i", "j"), "y", (IteratorReference("i"),), Reduction.ADD, value)
    root = loops([("i0", ROWS, LoopKind.SEQUENTIAL), ("j0", 3, LoopKind.REDUCTION)], instance("S0", "i0", "j0"))
    buffers = (buffer("x", type, ROWS, 3), buffer("y", type, ROWS, writable=True))
    program = LoopProgram("in_memory", buffers, (), (), (body,), root, checked=True)
    assert run(program, {"x": x, "y": y}) == 0
    np.testing.assert_array_equal(y, 27.0)
    assert "accumulator" not in c_source(program).text
