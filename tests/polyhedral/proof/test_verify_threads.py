"""What orders the threads of a block: barriers that all of them meet, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import islpy as isl
import numpy as np
import pytest

import tc
from tc.base.proof import Proof
from tc.polyhedral.execution.barriers import Place, barriers_along
from tc.polyhedral.execution.execution import Execution
from tc.polyhedral.execution.loop_execution import follow_path, frame_of_path, loop_execution, loop_paths
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Guard,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
)
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.proof.conflicts import Meeting
from tc.polyhedral.proof.demands import Demands
from tc.polyhedral.proof.verify import prove
from tc.polyhedral.proof.verify_threads import check_threads
from tc.polyhedral.separate.separate_counts import separate_counts
from tests.gpu_cases import OPTIONS as EMULATED
from tests.gpu_cases import check
from tests.mutants.mistakes import dropping
from tests.mutants.programs import OPTIONS, case_named, judged
from tests.turns import every_row

SUMS = "def sums(float(M,N) X) -> (O) { O(m) +=! X(m,n) }"
FIRST, BARRIER, LAST = Instance("first", ()), Barrier("barrier", ()), Instance("last", ())
TWICE = Loop("i", IndexLiteral(0), IndexLiteral(1), 1, LoopKind.SEQUENTIAL, BARRIER)
ONE_ITERATION_AT_LEAST = replace(TWICE, upper=IndexVariable("outer"))
MAYBE_NONE = replace(TWICE, upper=IndexOperation(IndexOperator.SUBTRACT, (IndexVariable("outer"), IndexLiteral(1))))
ALWAYS = IndexOperation(IndexOperator.LESS, (IndexVariable("outer"), IndexLiteral(4)))
SOMETIMES = IndexOperation(IndexOperator.LESS, (IndexVariable("outer"), IndexLiteral(2)))


@pytest.mark.parametrize(
    ("between", "separates"),
    [
        (BARRIER, True),
        (TWICE, True),
        (ONE_ITERATION_AT_LEAST, True),
        (MAYBE_NONE, False),
        (Block((LAST, TWICE)), True),
        (Guard(SOMETIMES, BARRIER, None), False),
        (Guard(SOMETIMES, BARRIER, LAST), False),
        (Guard(ALWAYS, BARRIER, None), True),
        (Guard(SOMETIMES, BARRIER, TWICE), True),
    ],
)
def test_only_what_surely_runs_a_barrier_separates(between: LoopTree, separates: bool) -> None:
    body = Block((FIRST, between, LAST))
    outer = Loop("outer", IndexLiteral(0), IndexLiteral(3), 1, LoopKind.SEQUENTIAL, body)
    context, barriers, ends = isl.Context(), list[Place](), list[Place]()
    for instance, path in loop_paths(outer, ()):
        place = Place(path, follow_path(path, frame_of_path(path, context, ())).points)
        (barriers if instance == BARRIER else ends).append(place)
    for place in ends:
        if len(place.path) == 2:
            assert barriers_along(place, barriers) == (None, (place.path[-1], frozenset({1} if separates else ())))


def with_barriers(condition: IndexOperator, number: int, *, first: bool) -> LoopTree:
    """Two rounds of four turns that have a barrier, first or after what is done in those that this holds for."""
    quarters = IndexOperation(IndexOperator.MULTIPLY, (IndexVariable("round"), IndexLiteral(4)))
    turn = IndexOperation(IndexOperator.ADD, (quarters, IndexVariable("turn")))
    barrier, used = (
        Barrier("barrier", (IndexVariable("thread"), turn)),
        Instance("used", (IndexVariable("thread"), turn)),
    )
    chosen = Guard(IndexOperation(condition, (turn, IndexLiteral(number))), used, None)
    body = Block((barrier, chosen) if first else (chosen, barrier))
    turns = Loop("turn", IndexLiteral(0), IndexLiteral(3), 1, LoopKind.SEQUENTIAL, body)
    return Loop("round", IndexLiteral(0), IndexLiteral(1), 1, LoopKind.SEQUENTIAL, turns)


FILLED = Instance("filled", (IndexVariable("thread"),))


@pytest.mark.parametrize(
    ("children", "is_proven"),
    [
        ((FILLED, with_barriers(IndexOperator.GREATER_EQUAL, 1, first=False)), True),
        ((FILLED, with_barriers(IndexOperator.GREATER_EQUAL, 0, first=False)), False),
        ((FILLED, with_barriers(IndexOperator.GREATER_EQUAL, 0, first=True)), True),
        ((with_barriers(IndexOperator.LESS_EQUAL, 6, first=True), FILLED), True),
        ((with_barriers(IndexOperator.LESS_EQUAL, 7, first=True), FILLED), False),
        ((with_barriers(IndexOperator.LESS_EQUAL, 7, first=False), FILLED), True),
    ],
)
def test_a_barrier_in_another_iteration_separates_what_the_loop_runs_from_what_is_outside(
    children: tuple[LoopTree, ...], is_proven: bool
) -> None:
    root = Loop("thread", IndexLiteral(0), IndexLiteral(7), 1, LoopKind.THREAD, Block(children))
    context = isl.Context()
    barrier = isl.Set.read_from_str(context, "{ barrier[thread, turn] : 0 <= thread <= 7 and 0 <= turn <= 7 }")
    scop = Scop(context, (), (), (), barriers=(barrier,))
    execution = loop_execution(root, {"filled": 1, "used": 2, "barrier": 2}, context)
    meeting = isl.UnionMap.read_from_str(context, "{ filled[thread] -> used[other, turn]; used[t, s] -> filled[o] }")
    found = check_threads(scop, execution, [Meeting(meeting)])
    assert (found is None) == is_proven
    assert is_proven or (found is not None and found.violation is Violation.RACE)


def only_loops(scop: Scop, execution: Execution, stage: str, demands: Demands) -> Proof:
    """A proof that takes the schedule on trust."""
    return Proof(0, 0, 0, 0) if stage == "schedule" else prove(scop, execution, stage, demands)


def refusal(options: tc.GpuOptions) -> str:
    values = np.zeros((5, 70), np.float32)
    with (
        patch("tc.polyhedral.pipeline.prove", only_loops),
        patch("tc.polyhedral.pipeline.infeasible_buffers", return_value=None),
        pytest.raises(tc.VerificationError) as raised,
    ):
        tc.define(SUMS).single().compile(values, target="emulator", options=options)
    return str(raised.value)


def test_threads_that_meet_different_barriers_are_apart() -> None:
    def at_two_places(tree: LoopTree, thread: str = "") -> LoopTree:
        match tree:
            case Barrier("barrier0"):
                ends = (IndexVariable(thread), IndexLiteral(0))
                operators = (IndexOperator.EQUAL, IndexOperator.GREATER)
                return Block(tuple(Guard(IndexOperation(operator, ends), tree, None) for operator in operators))
            case Loop() | Allocation():
                if isinstance(tree, Loop) and tree.kind is LoopKind.THREAD:
                    thread = tree.iterator
                return replace(tree, body=at_two_places(tree.body, thread))
            case Block(children):
                return Block(tuple(at_two_places(child, thread) for child in children))
            case _:
                return tree

    def separate(root: LoopTree) -> LoopTree:
        return at_two_places(separate_counts(root))

    with patch("tc.polyhedral.grid_passes.separate_counts", separate):
        assert "some thread of a block may miss a barrier: barrier0" in refusal(OPTIONS["partial results"])


def test_loops_over_threads_that_follow_each_other_need_a_barrier_between_them() -> None:
    def in_turns(tree: LoopTree) -> LoopTree:
        """Each child of the block inside of the threads in a loop of its own."""
        match tree:
            case Loop(kind=LoopKind.THREAD, body=Allocation(buffer, Block(children))):
                return Allocation(buffer, Block(tuple(replace(tree, body=child) for child in children)))
            case Block(children):
                return Block(tuple(map(in_turns, children)))
            case Loop() | Allocation():
                return replace(tree, body=in_turns(tree.body))
            case _:
                return tree

    def separate(root: LoopTree) -> LoopTree:
        return in_turns(separate_counts(root))

    with (
        patch("tc.polyhedral.grid_passes.separate_counts", separate),
        patch("tc.polyhedral.grid_passes.place_barriers", dropping("barrier0")),
    ):
        assert "no barrier orders two conflicting instances" in refusal(OPTIONS["partial results"])


def test_barriers_in_a_loop_spare_one_after_it() -> None:
    """The partial sums begin before a product is made tile by tile and are used after it."""
    barriers = list(judged(case_named("two_matmuls"), OPTIONS["partial results"], "without barrier"))
    assert barriers
    assert all(mistake.verdict.refused and mistake.verdict.wrong for mistake in barriers)


@pytest.mark.parametrize(
    ("name", "options", "count"),
    every_row(
        2,
        [
            # All distances but the last are there before a barrier, and those who wrote the last one read it.
            ("nearest_codes", "tiles", 2),
            # The greatest scores and their sums are used from the second iteration on: the first one copies for it.
            ("causal_attention", "copied ahead", 6),
        ],
    ),
)
def test_what_other_iterations_have_a_barrier_for_needs_no_further_one(name: str, options: str, count: int) -> None:
    barriers = list(judged(case_named(name), OPTIONS[options], "without barrier"))
    assert len(barriers) == count
    assert all(mistake.verdict.refused and mistake.verdict.wrong for mistake in barriers)


def test_of_what_is_left_to_the_last_iteration_only_that_is_compared_with_what_follows() -> None:
    """Counts of all segments but the last are there before a barrier; those of the last are used by who made them."""
    case = case_named("segment_counts")
    check(case, case.large_ragged_sizes, EMULATED["partial results of partial results, in memory"])
