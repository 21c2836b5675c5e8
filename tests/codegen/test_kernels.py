"""Whole kernels, hand-made, against NumPy."""

from __future__ import annotations

import numpy as np

from tc.language.program import IteratorReference, Literal, Reduction
from tc.polyhedral.loops import Block, LoopKind, LoopProgram, StatementBody
from tc.types import ScalarType
from tests.codegen.build import binary, buffer, instance, loops, read
from tests.codegen.harness import run

F = ScalarType.FLOAT32
M, N, K = 7, 129, 33


def matrix_product(inner: LoopKind) -> LoopProgram:
    target = (IteratorReference("m"), IteratorReference("n"))
    product = binary("*", read("A", F, "m", "k"), read("B", F, "k", "n"))
    return LoopProgram(
        "mm",
        (buffer("A", F, M, K), buffer("B", F, K, N), buffer("C", F, M, N, writable=True)),
        (),
        (),
        (
            StatementBody("S0", ("m", "n"), "C", target, None, Literal(0.0, F)),
            StatementBody("S1", ("m", "n", "k"), "C", target, Reduction.ADD, product),
        ),
        loops(
            [("c0", M, LoopKind.PARALLEL), ("c1", N, LoopKind.SEQUENTIAL)],
            Block((instance("S0", "c0", "c1"), loops([("c2", K, inner)], instance("S1", "c0", "c1", "c2")))),
        ),
        checked=True,
    )


def test_matrix_product_with_accumulator_and_in_memory() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(-8, 8, (M, K)).astype(np.float32), random.integers(-8, 8, (K, N)).astype(np.float32)
    for inner in (LoopKind.REDUCTION, LoopKind.SEQUENTIAL):
        c = np.full((M, N), np.nan, np.float32)
        assert run(matrix_product(inner), {"A": a, "B": b, "C": c}) == 0
        np.testing.assert_array_equal(c, a @ b)
