"""What the hardware runs of the loops over blocks and threads: each iteration once, and in no order."""

from __future__ import annotations

from unittest.mock import patch

import islpy as isl
import pytest

import tc
from tc.base.types import ScalarType
from tc.language.program.specialization import Layout
from tc.polyhedral.execution.loop_execution import loop_execution
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Buffer,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
    Sharing,
)
from tc.polyhedral.pipeline import _Run

TWICE = "def twice(float(N) x) -> (y, z) { y(i) = x(i) z(i) = y(i) }"
SEQUENTIAL, BLOCK, THREAD = LoopKind.SEQUENTIAL, LoopKind.BLOCK, LoopKind.THREAD
FIRST, LAST = IndexLiteral(0), IndexLiteral(7)


def over(kind: LoopKind, name: str, body: LoopTree, first: IndexLiteral = FIRST, last: IndexLiteral = LAST) -> Loop:
    return Loop(name, first, last, 1, kind, body)


def once(kind: LoopKind, name: str, body: LoopTree) -> Loop:
    return over(kind, name, body, FIRST, FIRST)


def backwards(name: str) -> IndexExpression:
    return IndexOperation(IndexOperator.SUBTRACT, (LAST, IndexVariable(name)))


def only(name: str, value: int, body: LoopTree) -> LoopTree:
    return Guard(IndexOperation(IndexOperator.EQUAL, (IndexVariable(name), IndexLiteral(value))), body, None)


FORWARDS, BACKWARDS = Instance("S0", (IndexVariable("i"),)), Instance("S1", (backwards("i"),))
IN_TURN = Block((only("turn", 0, FORWARDS), only("turn", 1, BACKWARDS)))
SHIFTED = Instance("S0", (IndexOperation(IndexOperator.ADD, (IndexVariable("i"), IndexLiteral(1))),))
STRAIGHT = Instance("S1", (IndexVariable("i"),))
BEFORE = IndexLiteral(-1)


def refusal(loops: LoopTree, text: str = TWICE) -> str:
    """What the proof has against these loops in place of those that a kernel would have."""
    with (
        patch.object(_Run, "loops", lambda *_: (loops, loops)),
        pytest.raises(tc.VerificationError) as refused,
    ):
        tc.define(text).single().compile((8,), target="emulator", options=tc.GpuOptions(split_k_threads=()))
    return str(refused.value)


@pytest.mark.parametrize(
    "loops",
    [
        over(SEQUENTIAL, "turn", over(BLOCK, "i", IN_TURN), last=IndexLiteral(1)),
        over(SEQUENTIAL, "turn", over(THREAD, "i", IN_TURN), last=IndexLiteral(1)),
        once(BLOCK, "b", Block((over(BLOCK, "i", FORWARDS), over(BLOCK, "i", BACKWARDS)))),
        once(BLOCK, "b", over(SEQUENTIAL, "turn", over(BLOCK, "i", IN_TURN), last=IndexLiteral(1))),
        once(THREAD, "t", over(BLOCK, "i", Block((FORWARDS, STRAIGHT)))),
        Block((over(BLOCK, "i", Block((FORWARDS, over(BLOCK, "b", FORWARDS)))), over(BLOCK, "i", STRAIGHT))),
        once(BLOCK, "b", Block((over(THREAD, "i", FORWARDS), over(SEQUENTIAL, "i", STRAIGHT)))),
        Block((over(BLOCK, "i", SHIFTED, BEFORE, IndexLiteral(6)), over(BLOCK, "i", STRAIGHT))),
        Block((over(THREAD, "i", SHIFTED, BEFORE, IndexLiteral(6)), over(BLOCK, "i", STRAIGHT))),
    ],
    ids=[
        "a loop around blocks",
        "a loop around threads",
        "blocks one after the other in a block",
        "a loop between blocks",
        "blocks in a thread",
        "fewer loops over blocks than there are",
        "fewer loops over threads than there are",
        "blocks from below zero",
        "threads from below zero",
    ],
)
def test_what_the_hardware_would_not_run_so_is_refused(loops: LoopTree) -> None:
    assert "the blocks and threads of a launch do not run a statement as the loops over them say: S" in refusal(loops)


def test_threads_are_told_apart_at_one_level_of_the_loops_only() -> None:
    """The first statement is on threads (0, i), the second one on (i, 0), further inside."""
    rows = over(THREAD, "j", once(SEQUENTIAL, "once", over(THREAD, "i", only("j", 0, FORWARDS))))
    columns = over(THREAD, "i", over(THREAD, "j", only("j", 0, STRAIGHT)))
    assert "no barrier orders two conflicting instances" in refusal(once(BLOCK, "b", Block((rows, columns))))


@pytest.mark.parametrize(("sharing", "several"), [(Sharing.THREAD, True), (Sharing.BLOCK, False)])
def test_every_thread_has_its_own_array_wherever_the_loop_over_threads_is(sharing: Sharing, several: bool) -> None:
    buffer = Buffer("kept", Layout(ScalarType.FLOAT32, (1,), (1,)), writable=True, sharing=sharing)
    loops = once(BLOCK, "b", Allocation(buffer, over(THREAD, "i", FORWARDS)))
    arrays = loop_execution(loops, {"S0": 1}, isl.Context()).scopes("kept", {"S0"})
    assert arrays is not None
    assert bool(arrays.is_injective()) is several
