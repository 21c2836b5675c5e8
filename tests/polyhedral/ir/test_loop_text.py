"""Loop trees as text: every node is there, and says what it does."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.base.types import ScalarType
from tc.language.program.specialization import Layout
from tc.polyhedral.ir.loop_text import index_text, loop_text
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Buffer,
    Copy,
    Guard,
    IndexLiteral,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    Prefetch,
    Use,
)
from tc.polyhedral.ir.totals import Fold, Total
from tests.codegen.build import index, operation

ITERATOR = IndexVariable("i")
LATER = operation(IndexOperator.ADD, "i", 16)
BUFFER = Buffer("tile", Layout(ScalarType.FLOAT32, (4, 8), (8, 1)), writable=True)


def test_every_node_has_a_line() -> None:
    leaves = Block(
        (
            Prefetch("A", LATER, 1),
            Prefetch("O", LATER, 3, Use.STORE),
            Copy("load", (ITERATOR,)),
            Copy("ahead", (ITERATOR,), group="barrier0"),
            Copy("rows", (ITERATOR,), gathers_for="S"),
            Barrier("barrier0", (ITERATOR,), 1),
            Barrier("barrier1", (ITERATOR,)),
            Instance("S", (ITERATOR,), prefetched=(LATER,)),
            Copy("store", (ITERATOR,), nontemporal=True),
        )
    )
    guard = Guard(operation(IndexOperator.LESS, "i", 5), leaves, Instance("T", ()))
    upper = operation(IndexOperator.MINIMUM, 7, "n")
    loop = Loop("i", IndexLiteral(0), upper, 2, LoopKind.SEQUENTIAL, guard, (Total("S", wide=True),), (Fold("S", 4),))
    assert loop_text(Allocation(BUFFER, loop)).splitlines() == [
        "float32 tile[4, 8], one for each thread",
        "  sequential i = 0 .. min(7, n) step 2, total of S",
        "    if i < 5",
        "      prefetch A[i + 16], 1 line",
        "      prefetch O[i + 16], 3 lines, to store",
        "      copy load(i)",
        "      copy ahead(i), asynchronous: awaited at barrier0",
        "      copy rows(i), gathers for S",
        "      barrier barrier0(i), all groups of copies but 1 awaited",
        "      barrier barrier1(i)",
        "      S(i), gathers of (i + 16) prefetched",
        "      copy store(i), non-temporal",
        "    else",
        "      T()",
        "    every 4: partial sums of S to their total",
    ]


@pytest.mark.parametrize(
    ("operator", "operands", "text"),
    [
        (IndexOperator.ADD, (operation(IndexOperator.ADD, "a", "b"), "c"), "a + b + c"),
        (IndexOperator.SUBTRACT, ("a", operation(IndexOperator.ADD, "b", 1)), "a - (b + 1)"),
        (IndexOperator.MULTIPLY, (3, operation(IndexOperator.ADD, "b", 1)), "3 * (b + 1)"),
        (IndexOperator.NEGATE, (operation(IndexOperator.ADD, "b", 1),), "-(b + 1)"),
        (IndexOperator.FLOOR_DIVIDE, ("a", 4), "floordiv(a, 4)"),
        (IndexOperator.NONNEGATIVE_DIVIDE, ("a", 4), "a / 4"),
        (IndexOperator.ZERO_REMAINDER, (operation(IndexOperator.MULTIPLY, 2, "a"), 4), "2 * a % 4"),
        (IndexOperator.SELECT, (operation(IndexOperator.LESS, "a", 1), 2, "b"), "(a < 1) ? 2 : b"),
    ],
)
def test_operators_are_those_of_formulas(operator: IndexOperator, operands: tuple[object, ...], text: str) -> None:
    assert index_text(operation(operator, *operands)) == text  # type: ignore[arg-type]
    assert index_text(index("a")) == "a"


def test_a_kernel_keeps_the_text_of_its_loops() -> None:
    copy = tc.define("def copy(float(N) A) -> (B) { B(i) = A(i) }").copy
    stages = {stage.name: stage.text for stage in copy.compile(np.zeros(8, np.float32)).stages}
    assert "S0(c0)" in stages["generate"]
