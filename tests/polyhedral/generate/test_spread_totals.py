"""Threads add up the partial results of warps each for themselves: a barrier less, and the same bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

import tc
from tc.polyhedral.generate.block_sums import block_sums
from tc.polyhedral.generate.spread_totals import spread_totals
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Buffer,
    Guard,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    Sharing,
    barriers,
    leaves,
)
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.proof.printed.verify_spread import find_wrong_spread, prove_spread
from tc.reference.compare import compare
from tc.targets.machine import GPUS
from tc.targets.options import GpuOptions
from tests.polyhedral.support import specialized
from tests.translated import translated
from tests.turns import one_in

SOFTMAX = """
def softmax(float(N,D) X) -> (O) {
  m(n) max=! X(n,d)
  e(n,d) = exp(X(n,d) - m(n))
  s(n) +=! e(n,d)
  O(n,d) = e(n,d) / s(n)
}
"""
NORM = """
def norm(float(N,D) X) -> (s, O) {
  s(n) +=! X(n,d)
  mean(n) = s(n) / D
  q(n) +=! (X(n,d) - mean(n)) * (X(n,d) - mean(n))
  O(n,d) = (X(n,d) - mean(n)) * rsqrt(q(n) / D + 1e-5)
}
"""


def program_of(text: str, *shapes: tuple[int, ...]) -> LoopProgram:
    """Before threads compute anything for themselves."""
    found = map_program(specialized(text, shapes), GpuOptions(), GPUS["sm_90"]).loops
    root = block_sums(found).root if found.blocked is None else found.blocked
    return replace(found, root=root, blocked=None)


def spread(program: LoopProgram) -> LoopProgram:
    return spread_totals(program, lambda own, root: find_wrong_spread(own, root) is None)


@pytest.mark.parametrize("text", [SOFTMAX, NORM])
def test_each_reduction_has_a_barrier_less(text: str) -> None:
    program = program_of(text, (8, 1000))
    assert (len(barriers(program.root)), len(barriers(spread(program).root))) == (4, 2)
    source = translated(tc.define(text).single(), (8, 1000), target="cuda:sm_90", options=GpuOptions()).source.text
    assert source.count("__syncthreads();") == 2
    totals = [own for own in spread(program).promoted if own.layout.span == 1 and own.sharing is not Sharing.LANES]
    assert totals
    assert all(own.sharing is Sharing.THREAD for own in totals)


@one_in(3)
@pytest.mark.parametrize("shape", [(5, 513), (3, 1000), (2, 1025), (7, 129), (1, 4099)])
@pytest.mark.parametrize("text", [SOFTMAX, NORM])
def test_results_have_the_same_bits(text: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    definition, again = tc.define(text).single(), tc.define(text).single()
    found = definition(x, target="emulator")
    with patch("tc.codegen.printer.source.spread_totals", lambda program, _: program):
        waiting = again(x, target="emulator")
    pairs = [(found, waiting)]
    if isinstance(found, tuple):
        assert isinstance(waiting, tuple)
        pairs = list(zip(found, waiting, strict=True))
    for name, (own, other) in zip(definition.program.results, pairs, strict=True):
        np.testing.assert_array_equal(np.asarray(own), np.asarray(other))
        assert compare(definition.oracle(x)[name], np.asarray(own)).ok


def test_rows_of_which_a_block_has_several_are_left_alone() -> None:
    """Their totals lie in the lanes of several threads along y."""
    program = program_of(NORM, (4096, 40))
    assert spread(program) == program


# --- mistakes


def changed(tree: LoopTree, change: Callable[[tuple[LoopTree, ...]], tuple[LoopTree, ...]]) -> LoopTree:
    """The kernel with other statements in a row."""
    match tree:
        case Loop(kind=LoopKind.BLOCK | LoopKind.THREAD) | Allocation():
            return replace(tree, body=changed(tree.body, change))
        case Block(children):
            return Block(change(children))
        case _:
            raise AssertionError(tree)


def without(number: int) -> Callable[[tuple[LoopTree, ...]], tuple[LoopTree, ...]]:
    def change(parts: tuple[LoopTree, ...]) -> tuple[LoopTree, ...]:
        places = [n for n, part in enumerate(parts) if isinstance(part, Barrier)]
        return tuple(part for n, part in enumerate(parts) if n != places[number])

    return change


@pytest.mark.parametrize("number", [0, 1])
def test_the_barriers_that_are_left_are_needed(number: int) -> None:
    program = program_of(NORM, (8, 1000))
    root = changed(spread(program).root, without(number))
    with pytest.raises(tc.VerificationError, match="what all threads compute is not proven correct"):
        prove_spread(program, root)


def test_statements_may_not_change_places() -> None:
    program = program_of(NORM, (8, 1000))
    root = changed(spread(program).root, lambda parts: (*parts[1:], parts[0]))
    assert find_wrong_spread(program, root) == "other statements"


def test_only_what_is_spread_belongs_to_threads() -> None:
    program = program_of(NORM, (8, 1000))

    def private(tree: LoopTree, chosen: Callable[[Buffer], bool], sharing: Sharing) -> LoopTree:
        match tree:
            case Allocation(buffer, body):
                own = replace(buffer, sharing=sharing) if chosen(buffer) else buffer
                return Allocation(own, private(body, chosen, sharing))
            case Loop(kind=LoopKind.BLOCK | LoopKind.THREAD):
                return replace(tree, body=private(tree.body, chosen, sharing))
            case _:
                return tree

    root = spread(program).root
    for chosen, sharing in (
        (lambda b: b.sharing is Sharing.BLOCK, Sharing.THREAD),
        (lambda b: "mean" in b.name, Sharing.BLOCK),
    ):
        assert find_wrong_spread(program, private(root, chosen, sharing)) == "other buffers"


def test_a_guard_around_a_result_may_not_go() -> None:
    """All threads would write it; that is no race of values, but what the proof of the schedule did not see."""
    program = program_of(NORM, (8, 1000))

    def change(parts: tuple[LoopTree, ...]) -> tuple[LoopTree, ...]:
        stores = {"s"}
        bodies = {body.name: body.target for body in program.bodies}

        def stored(part: LoopTree) -> bool:
            found = [leaf for leaf in leaves(part) if isinstance(leaf, Instance)]
            return isinstance(part, Guard) and any(bodies[leaf.statement] in stores for leaf in found)

        assert any(map(stored, parts))
        return tuple(part.then if isinstance(part, Guard) and stored(part) else part for part in parts)

    assert find_wrong_spread(program, changed(spread(program).root, change)) is not None


def test_what_depends_on_a_thread_is_not_spread() -> None:
    program = program_of(NORM, (8, 1000))
    own = spread(program)

    thread = next(step for step in _loops(program.root) if step.kind is LoopKind.THREAD)
    total = next(body.name for body in program.bodies if body.name.endswith("_total_total"))

    def change(tree: LoopTree) -> LoopTree:
        match tree:
            case Instance(statement, arguments) if statement == total:
                return replace(tree, arguments=(*arguments[:-1], IndexVariable(thread.iterator)))
            case Loop():
                return replace(tree, body=change(tree.body))
            case Allocation():
                return replace(tree, body=change(tree.body))
            case Block(children):
                return Block(tuple(map(change, children)))
            case Guard(condition, then, otherwise):
                return Guard(condition, change(then), otherwise)
            case _:
                return tree

    before = replace(program, root=change(program.root))
    assert find_wrong_spread(before, change(own.root)) == "a statement depends on its thread"


def _loops(tree: LoopTree) -> list[Loop]:
    match tree:
        case Loop():
            return [tree, *_loops(tree.body)]
        case Allocation():
            return _loops(tree.body)
        case _:
            return []
