"""Where buffers of promoted tensors lie: small ones on the stack, others in the thread's scratch memory."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.codegen.printer.source import c_source
from tc.language.program.program import IteratorReference
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    LoopKind,
    LoopProgram,
    StatementBody,
)
from tests.codegen.build import buffer, instance, loops, read
from tests.codegen.harness import VECTOR_BYTES, run
from tests.turns import one_in

FLOAT64 = ScalarType.FLOAT64


def reversed_rows(kind: LoopKind, width: int) -> LoopProgram:
    """``y(i,j) = x(i,width-1-j)`` through two buffers, one inside the other, of a row each."""
    j = IteratorReference("j")
    bodies = (
        StatementBody("load", ("i", "j"), "outer", (j,), None, read("x", FLOAT64, "i", "j")),
        StatementBody("turn", ("j", "r"), "inner", (IteratorReference("r"),), None, read("outer", FLOAT64, "j")),
        StatementBody("store", ("i", "j"), "y", (IteratorReference("i"), j), None, read("inner", FLOAT64, "j")),
    )
    row = [("c1", width, LoopKind.VECTOR)]
    turned = IndexOperation(IndexOperator.SUBTRACT, (IndexLiteral(width - 1), IndexVariable("c1")))
    turn = Block((loops(row, instance("turn", "c1", turned)), loops(row, instance("store", "c0", "c1"))))
    inner, outer = buffer("inner", FLOAT64, width, writable=True), buffer("outer", FLOAT64, width, writable=True)
    body = Allocation(outer, Block((loops(row, instance("load", "c0", "c1")), Allocation(inner, turn))))
    return LoopProgram(
        "rows",
        (buffer("x", FLOAT64, 7, width), buffer("y", FLOAT64, 7, width, writable=True)),
        (),
        (),
        bodies,
        loops([("c0", 7, kind)], body),
        checked=True,
        promoted=(outer, inner),
    )


@one_in(2)
@pytest.mark.parametrize("kind", [LoopKind.PARALLEL, LoopKind.SEQUENTIAL])
@pytest.mark.parametrize(
    ("width", "scratch"),
    [(1, 0), (129, 0), (512, 0), (513, 4160), (1000, 8000), (1024, 8192), (1025, 2 * 8256), (5000, 2 * 40_000)],
)
def test_buffers_in_either_place(kind: LoopKind, width: int, scratch: int) -> None:
    """The outer buffer takes what there is of the stack first; beyond 8 KiB every thread needs scratch memory."""
    program = reversed_rows(kind, width)
    source = c_source(program, VECTOR_BYTES)
    assert source.scratch_bytes == scratch
    on_the_stack = (scratch < 16 * width) + (scratch == 0)
    # One element is a variable, without anything around it.
    assert source.text.count("] __attribute__((aligned(64)))") == (on_the_stack if width > 1 else 0)
    assert len(re.findall(r"double t_\w+\[1\];", source.text)) == (on_the_stack if width == 1 else 0)
    x, y = np.random.default_rng(0).standard_normal((7, width)), np.zeros((7, width))
    assert run(program, {"x": x, "y": y}) == 0
    np.testing.assert_array_equal(y, x[:, ::-1])
