"""Whole kernels, hand-made, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.language.program.program import Cast, Expression, Literal
from tc.polyhedral.ir.loops import (
    Block,
    LoopKind,
    LoopProgram,
)
from tests.codegen.build import binary, read
from tests.codegen.harness import dtype_of, evaluate, run
from tests.codegen.integers import quotient, wrapped
from tests.codegen.kernels import F, K, M, N, matrix_product, padded_convolution, row_sums


def test_matrix_product_with_accumulator_and_in_memory() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(-8, 8, (M, K)).astype(np.float32), random.integers(-8, 8, (K, N)).astype(np.float32)
    for inner in (LoopKind.REDUCTION, LoopKind.SEQUENTIAL):
        c = np.full((M, N), np.nan, np.float32)
        assert run(matrix_product(inner), {"A": a, "B": b, "C": c}) == 0
        np.testing.assert_array_equal(c, a @ b)


def test_padded_convolution() -> None:
    random = np.random.default_rng(0)
    x, w = random.integers(-8, 8, N).astype(np.float32), random.integers(-8, 8, 3).astype(np.float32)
    y = np.full(N, np.nan, np.float32)
    assert run(padded_convolution(), {"x": x, "w": w, "y": y}) == 0
    np.testing.assert_array_equal(y, np.convolve(x, w[::-1], mode="same"))


@pytest.mark.parametrize("type", [type for type in ScalarType if type is not ScalarType.BOOL], ids=str)
def test_elementwise(type: ScalarType) -> None:
    """``(a * b - c) / 3``: floats against NumPy's own rounding, integers exactly."""
    random = np.random.default_rng(0)
    a, b, c = (random.integers(0, 12, N).astype(dtype_of(type)) for _ in "abc")
    difference = binary("-", binary("*", read("a", type, "i"), read("b", type, "i")), read("c", type, "i"))
    value = binary("/", difference, Literal(3.0 if type.is_floating else 3, type))
    result = evaluate({"y": value}, {"a": a, "b": b, "c": c})["y"]
    if type.is_half:
        x, y, z = (array.astype(np.float32) for array in (a, b, c))
        expected = ((x * y - z) / np.float32(3)).astype(a.dtype)
    elif type.is_floating:
        expected = (a * b - c) / a.dtype.type(3)
    else:
        triples = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
        expected = np.array([quotient(wrapped(x * y - z, type), 3) for x, y, z in triples])
    np.testing.assert_array_equal(result, expected)


def test_deep_expressions_print() -> None:
    """As deep as a text may be, with a conversion at every level."""
    value: Expression = read("x", F, "i")
    for level in range(200):
        other = ScalarType.FLOAT64 if level % 2 == 0 else F
        value = binary("+", Cast(value, other), Literal(1.0, other))
    x = np.arange(N, dtype=np.float32)
    np.testing.assert_array_equal(evaluate({"y": value}, {"x": x})["y"], x + 200)


def test_a_kernel_may_do_nothing() -> None:
    assert run(LoopProgram("nothing", (), (), (), (), Block(()), checked=True), {}) == 0


def test_row_sums() -> None:
    random = np.random.default_rng(0)
    indices = random.integers(0, N, (M, M)).astype(np.int32)
    table = random.integers(-8, 8, (N, K)).astype(np.float32)
    sums = np.ones((M, K), np.float32)
    assert run(row_sums(), {"I": indices, "E": table, "s": sums}) == 0
    expected = [1 + table[indices[b, : b + 1]].sum(axis=0) for b in range(M)]
    np.testing.assert_array_equal(sums, expected)
