"""Loop-invariant reads on a condition: which are loaded before a loop over lanes, and that results stay the same."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.base.types import ScalarType
from tc.codegen.index.hoisted_reads import hoisted_reads
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, Expression, IteratorReference, Literal, Select
from tc.polyhedral.analysis.ranges import Range
from tc.polyhedral.ir.loops import Buffer, IndexExpression, IndexOperator, Loop, LoopKind, StatementBody
from tests.codegen.build import binary, buffer, instance, integer, loops, operation, read

TYPE = ScalarType.FLOAT32
X = buffer("x", TYPE, 8, 100)
WEIGHTS = buffer("w", TYPE, 8)


def hoisted(otherwise: Expression, *buffers: Buffer, target: str = "y", row: IndexExpression | str = "c0") -> list[str]:
    """The tensors of what is loaded before ``for j: target(i, j) = x(i, j) > 0 ? x(i, j) : otherwise``.

    ``row``: what i is, for ``c0`` from 0 to 7.
    """
    element = read("x", TYPE, "i", "j")
    value = Select(binary(">", element, Literal(0.0, TYPE)), element, otherwise, TYPE)
    subscripts = (IteratorReference("i"), IteratorReference("j"))
    body = StatementBody("S", ("i", "j"), target, subscripts, None, value)
    loop = loops([("c1", 100, LoopKind.VECTOR)], instance("S", row, "c1"))
    assert isinstance(loop, Loop)
    layouts = {own.name: own.layout for own in (X, *buffers, buffer(target, TYPE, 8, 100))}
    return [own.read.tensor for own in hoisted_reads(loop, {"S": body}, layouts, (), {"c0": Range(0, 7)}, ())]


def test_an_element_for_a_row_is_loaded_once() -> None:
    weight = read("w", TYPE, "i")
    assert hoisted(binary("*", weight, weight), WEIGHTS) == ["w"]
    assert hoisted(read("w", TYPE), buffer("w", TYPE)) == ["w"]
    assert hoisted(read("w", TYPE, "j"), buffer("w", TYPE, 100, strides=(0,))) == ["w"]
    assert hoisted(binary("+", read("v", TYPE, integer(3)), weight), WEIGHTS, buffer("v", TYPE, 4)) == ["v", "w"]


def test_elements_that_may_be_outside_are_not() -> None:
    before = Binary(BinaryOperator.SUBTRACT, IteratorReference("i"), integer(1), ScalarType.INT64)
    assert not hoisted(read("w", TYPE, before), WEIGHTS)
    assert not hoisted(read("w", TYPE, "i"), buffer("w", TYPE, 7))
    assert not hoisted(read("w", TYPE, "i"), buffer("w", TYPE, 0))


def test_what_isl_divides_where_instances_run_may_be_elsewhere() -> None:
    """Before an empty loop, ``(i - 3) % 4`` is negative in C."""
    for operator, inside in (
        (IndexOperator.NONNEGATIVE_REMAINDER, False),
        (IndexOperator.NONNEGATIVE_DIVIDE, False),
        (IndexOperator.EXACT_DIVIDE, False),
        (IndexOperator.FLOOR_DIVIDE, True),
    ):
        below = operation(operator, operation(IndexOperator.SUBTRACT, "c0", 3), 4)
        place = below if operator is IndexOperator.NONNEGATIVE_REMAINDER else operation(IndexOperator.ADD, below, 1)
        assert (hoisted(read("w", TYPE, "i"), WEIGHTS, row=place) == ["w"]) == inside
        above = operation(operator, operation(IndexOperator.ADD, "c0", 3), 4)
        assert (hoisted(read("w", TYPE, "i"), WEIGHTS, row=above) == ["w"]) == (
            operator is not IndexOperator.EXACT_DIVIDE
        )


def test_elements_in_front_of_the_first_one() -> None:
    assert hoisted(read("w", TYPE, "i"), buffer("w", TYPE, 8, strides=(-2,))) == ["w"]
    assert not hoisted(read("w", TYPE, "i"), buffer("w", TYPE, 7, strides=(-2,)))


def test_inner_loops_have_variables_of_their_own() -> None:
    element = read("x", TYPE, "i", "j")
    weights = binary("*", read("w", TYPE, "i"), read("v", TYPE, "k"))
    value = Select(binary(">", element, Literal(0.0, TYPE)), element, weights, TYPE)
    body = StatementBody("S", ("i", "k", "j"), "y", tuple(map(IteratorReference, "ij")), None, value)
    inner = loops([("c2", 100, LoopKind.VECTOR)], instance("S", "c0", "c1", "c2"))
    outer = loops([("c1", 8, LoopKind.VECTOR)], inner)
    layouts = {own.name: own.layout for own in (X, WEIGHTS, buffer("v", TYPE, 8), buffer("y", TYPE, 8, 100))}
    ranges = {"c0": Range(0, 7)}
    assert isinstance(outer, Loop)
    assert isinstance(inner, Loop)
    around = hoisted_reads(outer, {"S": body}, layouts, (), ranges, ())
    assert [(own.name, own.read.tensor) for own in around] == [("hoisted0", "w")]
    every = hoisted_reads(inner, {"S": body}, layouts, (), {**ranges, "c1": Range(0, 7)}, around)
    assert [(own.name, own.read.tensor) for own in every] == [("hoisted0", "w"), ("hoisted1", "v")]


def test_elements_of_lanes_are_not() -> None:
    assert not hoisted(read("w", TYPE, "j"), buffer("w", TYPE, 100))
    assert not hoisted(read("x", TYPE, "i", "j"))


def test_what_every_instance_reads_is_left_to_the_compiler() -> None:
    element, weight = read("x", TYPE, "i", "j"), read("w", TYPE, "i")
    chosen = Select(binary(">", element, weight), element, weight, TYPE)
    body = StatementBody("S", ("i", "j"), "y", (IteratorReference("i"), IteratorReference("j")), None, chosen)
    loop = loops([("c1", 100, LoopKind.VECTOR)], instance("S", "c0", "c1"))
    assert isinstance(loop, Loop)
    layouts = {own.name: own.layout for own in (X, WEIGHTS, buffer("y", TYPE, 8, 100))}
    assert not hoisted_reads(loop, {"S": body}, layouts, (), {"c0": Range(0, 7)}, ())


def test_what_the_loop_writes_is_not() -> None:
    assert not hoisted(read("y", TYPE, "i", integer(0)))


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 17])
@pytest.mark.parametrize(
    "text",
    [
        "def f(float(N,M) X, float(N) w) -> (y) { y(i,j) = X(i,j) > 0 ? X(i,j) : w(i) * X(i,j) }",
        "def f(float(N,M) X, float(N) w) -> (y) { y(i) +=! X(i,j) > 0 ? X(i,j) : w(i) }",
        "def f(float(N,M) X, float(N) w) -> (y) { y(j) +=! X(i,j) > 0 ? (w(i) > 0 ? w(0) : w(N-1)) : w(i) }",
        "def f(float(N,M) X, float(N) w) -> (y) { y(i,j) = i >= 1 ? w(i-1) : X(i,j) where i in 0:N }",
        "def f(float(N,M) X, float(N) w) -> (y) { y(i,j) = X(i,j)  y(i,j) += y(i,j) > 0 ? w(i) : -w(i) }",
        "def f(half(N,M) X, half(N) w) -> (y) { y(i,j) = X(i,j) > 0 ? X(i,j) : w(i) }",
    ],
)
def test_results_are_those_of_the_reference(text: str, rows: int, vectorize: bool) -> None:
    f, random = tc.define(text).single(), np.random.default_rng(rows)
    dtype = np.float16 if "half" in text else np.float32
    for columns in (1, 5, 37):
        x, w = (random.standard_normal(shape).astype(dtype) for shape in ((rows, columns), (rows,)))
        got = np.asarray(f(x, w, options=tc.CpuOptions(vectorize=vectorize)))
        np.testing.assert_allclose(got, f.reference(x, w), rtol=1e-5, atol=1e-5)
