"""What lanes of a warp must not do: the proof refuses it, and the emulator computes something else, or stops."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

import tc
from tc.base.proof import Proof
from tc.polyhedral.gpu.promotion import promote_temporaries, promote_to_lanes
from tc.polyhedral.ir.loops import (
    Allocation,
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
from tc.polyhedral.separate.separate_counts import separate_counts
from tests.mutants.judge import Given, is_right

SUMS = "def sums(float(M,N) X) -> (O) { O(m) +=! X(m,n) }"
# Rows of 48 elements: threads 0 to 31 of each row hold partial results, and all 48 use their total.
ROWS = "def rows(float(M,N) X) -> (S, O) { S(m) +=! X(m,n)  O(m,n) = X(m,n) + S(m) }"

Change = Callable[[Loop, str], LoopTree]


def changed(tree: LoopTree, change: Change, x: str = "") -> LoopTree:
    """The tree with its loops over lanes changed; ``x``: the iterator of the threads around."""
    match tree:
        case Loop(kind=LoopKind.LANES):
            return change(tree, x)
        case Loop():
            inside = tree.iterator if tree.kind is LoopKind.THREAD else x
            return replace(tree, body=changed(tree.body, change, inside))
        case Block(children):
            return Block(tuple(changed(child, change, x) for child in children))
        case Guard(condition, then, otherwise):
            return Guard(condition, changed(then, change, x), otherwise and changed(otherwise, change, x))
        case Allocation(buffer, body):
            return Allocation(buffer, changed(body, change, x))
        case _:
            return tree


def compared(operator: IndexOperator, x: str, bound: int) -> IndexOperation:
    return IndexOperation(operator, (IndexVariable(x), IndexLiteral(bound)))


def in_halves(loop: Loop, x: str) -> LoopTree:
    """Half a warp after the other."""
    return Block(
        (
            Guard(compared(IndexOperator.LESS, x, 16), loop, None),
            Guard(compared(IndexOperator.GREATER_EQUAL, x, 16), loop, None),
        )
    )


def of_half_the_lanes(loop: Loop, x: str) -> LoopTree:
    first, second = (replace(loop, lower=IndexLiteral(a), upper=IndexLiteral(b)) for a, b in ((0, 15), (16, 31)))
    return Block((first, second))


def in_order(loop: Loop, x: str) -> LoopTree:
    """No exchange: a thread looks for all of it in its own register."""
    return replace(loop, kind=LoopKind.SEQUENTIAL)


def by_loops(change: Change) -> AbstractContextManager[object]:
    def separate(root: LoopTree) -> LoopTree:
        return changed(separate_counts(root), change)

    return patch("tc.polyhedral.grid_passes.separate_counts", separate)


def judged(text: str, shape: tuple[int, ...], options: tc.GpuOptions, mistake: AbstractContextManager[object]) -> str:
    """What the proof says of the mistake; the emulator must notice it, too."""
    comprehension = tc.define(text).single()
    values = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    inputs = dict(zip(comprehension.program.arguments, (values,), strict=True))
    with mistake:
        with pytest.raises(tc.VerificationError) as raised:
            comprehension.compile(values, target="emulator", options=options)
        with patch("tc.polyhedral.pipeline.prove", lambda *_: Proof(0, 0, 0, 0)):
            kernel = comprehension.compile(values, target="emulator", options=options)
    assert not is_right(comprehension, kernel, Given(inputs))
    return str(raised.value)


@pytest.mark.parametrize("change", [in_halves, of_half_the_lanes, in_order])
def test_all_lanes_take_part_in_one_loop(change: Change) -> None:
    assert "may miss an exchange" in judged(SUMS, (5, 70), tc.GpuOptions(split_k_threads=(32,)), by_loops(change))


def test_rows_of_threads_must_be_whole_warps() -> None:
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(2,)), block=(48, 2), split_k_threads=(32,))
    misaligned = patch.object(promote_temporaries, "has_warps_along_x", lambda _: True)
    assert "may miss an exchange" in judged(ROWS, (6, 48), options, misaligned)


def test_whoever_writes_does_so_in_its_own_lane() -> None:
    options = tc.GpuOptions(block=(64,), split_k_threads=(128, 4))
    with ExitStack() as careless:
        for name in ("_is_in_own_lane", "_combines_lanes"):
            careless.enter_context(patch.object(promote_to_lanes, name, lambda *_: True))
        said = judged(SUMS, (9, 300), options, careless.pop_all())
    assert "finds another element" in said


def test_other_loops_are_no_exchanges() -> None:
    text = "def f(float(M,N) X) -> (S, O) { S(m) +=! X(m,n)  O(m,q) +=! X(m,q) where q in 0:32, l in 0:32 }"

    def mislabelled(root: LoopTree) -> LoopTree:
        return relabelled(separate_counts(root))

    mistake = patch("tc.polyhedral.grid_passes.separate_counts", mislabelled)
    said = judged(text, (5, 70), tc.GpuOptions(shared_memory=0), mistake)
    assert "may miss an exchange" in said


def relabelled(tree: LoopTree) -> LoopTree:
    """The loop right around ``S1`` is one over lanes."""
    match tree:
        case Loop(body=Instance("S1"), kind=LoopKind.SEQUENTIAL | LoopKind.REDUCTION):
            return replace(tree, kind=LoopKind.LANES)
        case Loop() | Allocation():
            return replace(tree, body=relabelled(tree.body))
        case Block(children):
            return Block(tuple(map(relabelled, children)))
        case Guard(condition, then, otherwise):
            return Guard(condition, relabelled(then), otherwise and relabelled(otherwise))
        case _:
            return tree
