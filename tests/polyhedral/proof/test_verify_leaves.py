"""Leaves of loops are what the proofs take them for: barriers that wait for enough, copies that are waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never
from unittest.mock import patch

import islpy as isl
import pytest

from tc.base.errors import VerificationError
from tc.compiler import translate
from tc.polyhedral.execution.loop_execution import loop_execution
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Copy,
    Guard,
    IndexLiteral,
    Instance,
    Leaf,
    Loop,
    LoopTree,
    leaves,
)
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.proof.verify_leaves import check_leaves
from tc.polyhedral.separate.separate_counts import separate_counts
from tc.targets.options import GpuOptions, ScheduleOptions
from tc.targets.target import parse_target
from tests.polyhedral.support import MATMUL, specialized
from tests.turns import one_in

Change = Callable[[LoopTree], LoopTree]
TILES = GpuOptions(ScheduleOptions(tile=(4, 4, 2)), block=(2, 2), stages=1)
PIPELINED = replace(TILES, stages=2)


def changed(tree: LoopTree, change: Change) -> LoopTree:
    """The tree with other leaves."""
    match tree:
        case Leaf():
            return change(tree)
        case Block(children):
            return Block(tuple(changed(child, change) for child in children))
        case Guard(condition, then, otherwise):
            return Guard(condition, changed(then, change), otherwise and changed(otherwise, change))
        case Loop() | Allocation():
            return replace(tree, body=changed(tree.body, change))
        case _:
            assert_never(tree)


def source(options: GpuOptions, target: str = "emulator", change: Change = lambda tree: tree) -> str:
    """What is printed of a product of matrices, once its loops with changed leaves are proven."""
    with patch("tc.polyhedral.grid_passes.separate_counts", lambda root: changed(separate_counts(root), change)):
        return translate(specialized(MATMUL, ((5, 6), (6, 7))), options, parse_target(target)).source.text


def refusal(options: GpuOptions, change: Change) -> str:
    with pytest.raises(VerificationError) as raised:
        source(options, change=change)
    return str(raised.value)


def without_barriers(tree: LoopTree) -> LoopTree:
    return Block(()) if isinstance(tree, Barrier) else tree


def pending(groups: int | None) -> Change:
    """Barriers that leave so many groups of copies pending."""
    return lambda tree: replace(tree, pending=groups) if isinstance(tree, Barrier) else tree


def awaited_at(barrier: str | None) -> Change:
    """Copies that this barrier waits for."""
    return lambda tree: replace(tree, group=barrier) if isinstance(tree, Copy) else tree


LATE = "what is copied may arrive after it is read"


@pytest.mark.parametrize(
    ("options", "change", "said"),
    [
        (TILES, without_barriers, "an instance never runs: barrier"),
        (TILES, awaited_at("barrier0"), f"{LATE}: S0_pack"),
        (PIPELINED, awaited_at("barrier1"), f"{LATE}: S0_pack"),
        (PIPELINED, pending(1), f"{LATE}: barrier0"),
        (PIPELINED, pending(None), f"{LATE}: barrier0"),
    ],
)
def test_wrong_leaves_are_refused(options: GpuOptions, change: Change, said: str) -> None:
    assert said in refusal(options, change)


@pytest.mark.parametrize(
    ("node", "is_right"),
    [
        (Barrier("barrier", ()), True),
        (Instance("barrier", ()), False),
        (Copy("barrier", ()), False),
        (Instance("S", ()), True),
        (Barrier("S", ()), False),
    ],
)
def test_what_is_called_as_a_barrier_is_one_and_nothing_else_is(node: Instance | Barrier, *, is_right: bool) -> None:
    context = isl.Context()
    scop = Scop(context, (), (), (), barriers=(isl.Set.read_from_str(context, "{ barrier[] }"),))
    found = check_leaves(scop, loop_execution(Block((node,)), {"barrier": 0, "S": 0}, context))
    assert is_right == (found is None)
    assert is_right or (found is not None and found.violation is Violation.WRONG_NODE)


@one_in(3)
@pytest.mark.parametrize(("options", "change"), [(PIPELINED, awaited_at(None)), (TILES, pending(0))])
def test_copies_may_be_complete_earlier_than_they_must(options: GpuOptions, change: Change) -> None:
    assert source(options, change=change) != source(options)


@pytest.mark.parametrize(
    ("target", "synchronous", "asynchronous"),
    [
        ("emulator", ["tc_barrier(team, 0);", "tc_barrier(team, 1);"], ["tc_copy_later(team, ", "tc_arrive(team, 0);"]),
        ("cuda:sm_80", ["__syncthreads();"], ["tc_copy_ahead<4>(", "tc_arrived<0>();"]),
        ("opencl", ["barrier(CLK_LOCAL_MEM_FENCE"], ["barrier(CLK_LOCAL_MEM_FENCE"]),
    ],
)
def test_barriers_and_copies_are_printed_in_each_language(
    target: str, synchronous: list[str], asynchronous: list[str]
) -> None:
    plain, pipelined = source(TILES, target), source(PIPELINED, target)
    assert all(text in plain for text in synchronous)
    assert all(text in pipelined for text in asynchronous)
    assert not any("arrive" in text and text in plain for text in asynchronous)


def test_leaves_are_listed_in_the_order_of_the_text() -> None:
    first, waiting, last = Instance("first", ()), Barrier("barrier0", ()), Copy("last", (), group="barrier0")
    guard = Guard(IndexLiteral(1), Block((first, waiting)), last)
    assert list(leaves(Block((guard, first)))) == [first, waiting, last, first]
