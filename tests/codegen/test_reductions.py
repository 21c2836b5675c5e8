"""Reductions: partial results in local variables and lanes give what memory would, NaN included."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.codegen.printer.source import c_source
from tc.language.program.program import IteratorReference, Reduction
from tc.polyhedral.analysis.accumulate import accumulation
from tc.polyhedral.ir.loops import (
    Barrier,
    Block,
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
from tests.codegen.build import binary, buffer, instance, loops, operation, read
from tests.codegen.harness import VECTOR_BYTES, Array, dtype_of, run
from tests.turns import one_in

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
    x: Array, results: Mapping[Reduction, Array], around: Callable[[LoopTree], LoopTree], column: IndexExpression
) -> str:
    """Runs ``y(i) reduction= x(i, j)`` in place for every result, with the loops of ``around`` and j at ``column``.

    Gives the source of the kernel.
    """
    type = ScalarType(x.dtype.name)
    bodies, nests = [], []
    for reduction in results:
        at, value = (IteratorReference("i"),), read("x", type, "i", "j")
        bodies.append(StatementBody(reduction.name, ("i", "j"), reduction.value, at, reduction, value))
        nests.append(loops([("i0", len(x), LoopKind.PARALLEL)], around(instance(reduction.name, "i0", column))))
    arrays = {reduction.value: y for reduction, y in results.items()}
    targets = (buffer(name, type, len(x), writable=True) for name in arrays)
    buffers = (buffer("x", type, *x.shape), *targets)
    program = LoopProgram("rows", buffers, (), (), tuple(bodies), Block(tuple(nests)), checked=True)
    assert run(program, {"x": x, **arrays}) == 0
    return c_source(program, VECTOR_BYTES).text


@one_in(2)
@pytest.mark.parametrize("type", ScalarType, ids=str)
def test_reductions_over_one_loop(type: ScalarType) -> None:
    random = np.random.default_rng(0)
    # So few and small that every partial result of the floating types is exact, in any order.
    columns = 9 if type.is_half else COLUMNS
    if type.is_half and type.itemsize == 1:
        columns = 3
    x = random.choice((1, 1, 1, 2), (ROWS, columns)).astype(dtype_of(type))
    start = random.choice((1, 2), ROWS).astype(dtype_of(type))
    results = {reduction: start.copy() for reduction in Reduction}
    text = reduce_rows(x, results, nest(columns), IndexVariable("j0"))
    assert text.count(" accumulator = ") >= len(Reduction)
    wide = np.dtype(np.float64) if type.is_floating else x.dtype
    everything = np.column_stack([start, x]).astype(wide)
    for reduction, y in results.items():
        np.testing.assert_array_equal(y.astype(wide), UFUNCS[reduction].reduce(everything, axis=1, dtype=wide))


BEGIN: Final = operation(IndexOperator.MULTIPLY, 16, "j0")
TILE: Final = operation(IndexOperator.MINIMUM, 15, operation(IndexOperator.SUBTRACT, COLUMNS - 1, BEGIN))
TILED: Final = operation(IndexOperator.ADD, BEGIN, "j1")


def test_nested_loops_share_one_accumulator() -> None:
    """Tiles of 16, the last one cut: constants alone show that no tile is empty."""
    x = np.arange(ROWS * COLUMNS, dtype=np.float64).reshape(ROWS, COLUMNS)
    y = np.ones(ROWS)
    text = reduce_rows(x, {Reduction.ADD: y}, nest(9, TILE), TILED)
    np.testing.assert_array_equal(y, 1 + x.sum(axis=1))
    assert text.count("double accumulator = ") == 1
    assert "reached" not in text


@pytest.mark.parametrize("type", [ScalarType.FLOAT32, ScalarType.INT16, ScalarType.BOOL, ScalarType.BFLOAT16], ids=str)
def test_an_element_that_no_instance_reaches_is_left_alone(type: ScalarType) -> None:
    """Only columns before the row's number count; row 0 has none, and its element must not be written."""
    x = np.ones((ROWS, COLUMNS), dtype_of(type))
    start = np.array([1, 0, 1, 0, 1], dtype_of(type))
    condition = operation(IndexOperator.LESS, "j0", "i0")

    def guarded(inside: LoopTree) -> LoopTree:
        return nest(COLUMNS)(Guard(condition, inside, None))

    results = {reduction: start.copy() for reduction in Reduction}
    text = reduce_rows(x, results, guarded, IndexVariable("j0"))
    assert text.count("if (reached)") == len(Reduction)
    for reduction, y in results.items():
        for row in range(ROWS):
            expected = start[row]
            for _ in range(row):
                expected = UFUNCS[reduction](expected, x[row, 0])
            assert y[row] == expected


@pytest.mark.parametrize("type", [ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.FLOAT16], ids=str)
def test_minimum_and_maximum_propagate_nan_from_any_lane(type: ScalarType) -> None:
    """Row r holds a NaN in column r; the last rows hold none, or start with one."""
    x = np.random.default_rng(0).standard_normal((COLUMNS + 2, COLUMNS)).astype(dtype_of(type))
    x[range(COLUMNS), range(COLUMNS)] = math.nan
    start = np.zeros(COLUMNS + 2, dtype_of(type))
    start[-1] = math.nan
    results = {reduction: start.copy() for reduction in (Reduction.MINIMUM, Reduction.MAXIMUM)}
    reduce_rows(x, results, nest(COLUMNS), IndexVariable("j0"))
    for reduction, y in results.items():
        np.testing.assert_array_equal(y, UFUNCS[reduction](start, UFUNCS[reduction].reduce(x, axis=1)))


@pytest.mark.parametrize("kind", [LoopKind.VECTOR, LoopKind.UNROLLED, LoopKind.SEQUENTIAL])
def test_reductions_inside_other_loops(kind: LoopKind) -> None:
    """Every lane of an outer loop has an accumulator of its own."""
    x, y = np.arange(ROWS * COLUMNS, dtype=np.float64).reshape(ROWS, COLUMNS), np.ones(ROWS)
    type = ScalarType.FLOAT64
    at, value = (IteratorReference("i"),), read("x", type, "i", "j")
    body = StatementBody("S0", ("i", "j"), "y", at, Reduction.MAXIMUM, value)
    root = loops([("i0", ROWS, kind), ("j0", COLUMNS, LoopKind.REDUCTION)], instance("S0", "i0", "j0"))
    buffers = (buffer("x", type, *x.shape), buffer("y", type, ROWS, writable=True))
    program = LoopProgram("inside", buffers, (), (), (body,), root, checked=True)
    assert run(program, {"x": x, "y": y}) == 0
    np.testing.assert_array_equal(y, x.max(axis=1))


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
    assert "accumulator" not in c_source(program, VECTOR_BYTES).text


def test_several_reductions_have_a_variable_each_but_not_around_a_barrier() -> None:
    value = read("A", ScalarType.FLOAT32, "i", "j")
    bodies = {
        name: StatementBody(name, ("i", "j"), name, (IteratorReference("i"),), Reduction.ADD, value)
        for name in ("x", "y")
    }
    both = Block(
        (instance("x", IndexLiteral(0), IndexVariable("j")), instance("y", IndexLiteral(0), IndexVariable("j")))
    )
    loop = Loop("j", IndexLiteral(0), IndexLiteral(7), 1, LoopKind.REDUCTION, both)
    found = accumulation(loop, bodies, {}, several=True)
    assert found is not None
    assert [partial.body.name for partial in found.partials] == ["x", "y"]
    assert accumulation(loop, bodies, {}, several=False) is None
    waiting = replace(loop, body=Block((both, Barrier("barrier0", (IndexVariable("j"),)))))
    assert accumulation(waiting, bodies, {}, several=True) is None
