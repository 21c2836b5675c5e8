"""Whole kernels, hand-made."""

from __future__ import annotations

from tc.base.types import ScalarType
from tc.language.program.program import Cast, IteratorReference, Literal, Read, Reduction, Select
from tc.polyhedral.ir.loops import (
    Block,
    Guard,
    IndexLiteral,
    IndexOperator,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    StatementBody,
)
from tests.codegen.build import binary, buffer, instance, integer, loops, operation, read

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


def padded_convolution() -> LoopProgram:
    """``y(i) +=! (i + k >= 1 && i + k <= N ? x(i + k - 1) : 0) * w(k)``, over tiles of 16 outputs."""
    place = binary("-", binary("+", IteratorReference("i"), IteratorReference("k")), integer(1))
    inside = binary("&&", binary(">=", place, integer(0)), binary("<", place, integer(N)))
    element = Select(inside, read("x", F, place), Literal(0.0, F), F)
    begin = operation(IndexOperator.MULTIPLY, 16, "t")
    last = operation(
        IndexOperator.MINIMUM, 15, operation(IndexOperator.ADD, operation(IndexOperator.MULTIPLY, -16, "t"), N - 1)
    )
    output = operation(IndexOperator.ADD, begin, "p")

    def points(body: LoopTree) -> Loop:
        return Loop("p", IndexLiteral(0), last, 1, LoopKind.VECTOR, body)

    taps = loops([("k", 3, LoopKind.UNROLLED)], points(instance("S1", output, "k")))
    return LoopProgram(
        "conv1d",
        (buffer("x", F, N), buffer("w", F, 3), buffer("y", F, N, writable=True)),
        (),
        (),
        (
            StatementBody("S0", ("i",), "y", (IteratorReference("i"),), None, Literal(0.0, F)),
            StatementBody(
                "S1", ("i", "k"), "y", (IteratorReference("i"),), Reduction.ADD,
                binary("*", element, read("w", F, "k")),
            ),
        ),
        loops([("t", 9, LoopKind.PARALLEL)], Block((points(instance("S0", output)), taps))),
        checked=True,
    )  # fmt: skip


def row_sums() -> LoopProgram:
    """``s(b, d) += E(I(b, l), d)`` for l before the row's length: a gather, a guard, and no known instance."""
    row = Cast(read("I", ScalarType.INT32, "b", "l"), ScalarType.INT64)
    at = (IteratorReference("b"), IteratorReference("d"))
    body = StatementBody("S0", ("b", "d", "l"), "s", at, Reduction.ADD, Read("E", (row, IteratorReference("d")), F))
    guarded = Guard(operation(IndexOperator.LESS_EQUAL, "c2", "c0"), instance("S0", "c0", "c1", "c2"), None)
    nest = loops([("c0", M, LoopKind.PARALLEL), ("c1", K, LoopKind.SEQUENTIAL), ("c2", M, LoopKind.REDUCTION)], guarded)
    buffers = (
        buffer("I", ScalarType.INT32, M, M), buffer("E", F, N, K), buffer("s", F, M, K, writable=True),
    )  # fmt: skip
    return LoopProgram("row_sums", buffers, (), (), (body,), nest, checked=True)
