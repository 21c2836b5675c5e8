"""Loops whose sums are blocked, and the proof that they add up what they added up before."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tc
from tc.base.errors import VerificationError
from tc.language.program.program import IteratorReference, Read
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.generate.block_sums import block_sums
from tc.polyhedral.generate.serial_chains import MOST, MOST_PLAIN
from tc.polyhedral.ir.loops import (
    IndexLiteral,
    IndexOperation,
    IndexVariable,
    Loop,
    LoopTree,
)
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.proof.verify_blocks import prove_blocks
from tc.reference.compare import compare
from tc.targets.options import CpuOptions
from tests.polyhedral.generate.sums import SUMS, changed, program_of
from tests.polyhedral.support import machine_for, specialized
from tests.translated import translated


def loops_in(tree: LoopTree) -> list[Loop]:
    return [step for _, path in loop_paths(tree, ()) for step in path if isinstance(step, Loop)]


@pytest.mark.parametrize("name", SUMS)
def test_long_sums_are_cut_into_runs(name: str) -> None:
    program = program_of(name)
    root = block_sums(program).root
    prove_blocks(program, root)
    assert any(loop.totals for loop in loops_in(root))
    runs = [loop for loop in loops_in(root) if loop.folds]
    most = MOST if name in ("of products", "of a step", "of a thread") else MOST_PLAIN
    assert runs
    assert all(loop.step * max(fold.every for fold in loop.folds) <= most for loop in runs)


TWO_TILES = """
def f(float(M,N) x, float(M,N) y, float(M) w) -> (t,s) {
    r(m) = rsqrt(w(m) * w(m) + 1)
    t(n) +=! x(m,n) * ((y(m,n) - w(m)) * r(m))
    s(n) +=! x(m,n)
}"""


def test_sums_in_the_same_loops_are_cut_together() -> None:
    """With runs of the shorter one: to cut the runs of one once more for the other would not be the same loops."""
    shapes = ((1_001, 128), (1_001, 128), (1_001,))
    program = map_program(specialized(TWO_TILES, shapes), CpuOptions(), machine_for(CpuOptions())).loops
    root = block_sums(program).root
    prove_blocks(program, root)
    assert [len(loop.totals) for loop in loops_in(root) if loop.totals] == [2] * 2
    f = tc.define(TWO_TILES).single()
    arrays = [np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in shapes]
    found = f(*arrays)
    assert isinstance(found, tuple)
    for own, expected in zip(found, f.oracle(*arrays).values(), strict=True):
        assert compare(expected, np.asarray(own)).ok


def without_totals(loop: Loop) -> Loop:
    return replace(loop, totals=())


def folded_twice(loop: Loop) -> Loop:
    return replace(loop, folds=(*loop.folds, *loop.folds))


def with_a_total_inside(loop: Loop) -> Loop:
    return replace(loop, body=changed(loop.body, lambda own: replace(own, totals=loop.totals))) if loop.totals else loop


def with_a_gap(loop: Loop) -> Loop:
    return replace(loop, step=loop.step + 1) if loop.folds else loop


def begun_late(loop: Loop) -> Loop:
    return replace(loop, lower=IndexLiteral(1)) if loop.folds else loop


def ended_early(loop: Loop) -> Loop:
    match loop.lower, loop.upper:
        case IndexVariable(), IndexOperation(operator, (first, *rest)):
            return replace(loop, upper=IndexOperation(operator, (first, *rest[:-1], IndexLiteral(1))))
        case _:
            return loop


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_totals, r"partial sums of S0 are added to no total"),
        (folded_twice, r"partial sums of S0 are added to their total twice"),
        (with_a_total_inside, r"S0 has a total inside of another one"),
        (with_a_gap, "their loops run something else"),
        (begun_late, "their loops run something else"),
        (ended_early, "their loops run something else"),
    ],
)
@pytest.mark.parametrize("name", SUMS)
def test_other_blocks_are_refused(name: str, change: Callable[[Loop], Loop], said: str) -> None:
    program = program_of(name)
    root = block_sums(program).root
    wrong = changed(root, change)
    if wrong == root:
        assert (name, change) == ("of a thread", ended_early)  # nothing was cut where threads wait for each other
        return
    with pytest.raises(VerificationError, match=f"the blocks of sums are not proven correct: {said}"):
        prove_blocks(program, wrong)


@pytest.mark.parametrize("name", ["of products", "of a thread"])
def test_nothing_else_looks_at_partial_sums(name: str) -> None:
    """As if the terms of a sum in a tile were read from the tile."""
    program = program_of(name)
    total = next(total for loop in loops_in(block_sums(program).root) for total in loop.totals)
    reduced = next(body for body in program.bodies if body.name == total.statement)
    spied = replace(reduced, value=Read(reduced.target, reduced.subscripts, reduced.value.type))
    lying = replace(program, bodies=tuple(spied if body is reduced else body for body in program.bodies))
    with pytest.raises(VerificationError, match=f"uses {total.buffer} while partial sums are in it"):
        prove_blocks(lying, block_sums(program).root)


def test_a_total_is_of_one_element() -> None:
    program = program_of("in lanes")
    reduced = next(body for body in program.bodies if body.reduction is not None)
    moving = replace(reduced, subscripts=(IteratorReference(reduced.iterators[-1]),))
    lying = replace(program, bodies=tuple(moving if body is reduced else body for body in program.bodies))
    with pytest.raises(VerificationError, match="S0 does not add to one element"):
        prove_blocks(lying, block_sums(program).root)


def test_elements_that_are_too_many_are_accumulated_in_float64() -> None:
    columns = tc.define("def f(float(M,N) x) -> (s) { s(n) +=! x(m,n) }").f
    memory = tc.CpuOptions(vectorize=False, register_tile=(), register_accumulators=0)
    wide = r"sum0\(.*\) \+= float64"
    assert re.search(wide, columns.compile((40_000, 500), options=memory).source)
    assert not re.search(wide, columns.compile((30, 500), options=memory).source)


@pytest.mark.parametrize(("depth", "tile", "stages"), [(96, 1, 2), (96, 4, 2), (300, 1, 1)])
def test_what_is_left_behind_a_fold_counts_in_the_next_iteration(depth: int, tile: int, stages: int) -> None:
    """72 sums of a thread, unrolled: a fold stands between them, and what is behind it goes on before it."""
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").single()
    schedule = tc.ScheduleOptions(tile=(24, 24, tile), unroll=512)
    options = tc.GpuOptions(schedule, block=(4, 2), stages=stages, register_accumulators=1024)
    found = translated(mm, (24, depth), (depth, 24), target="cuda:sm_90", options=options)
    assert any(loop.folds for loop in loops_in(block_sums(found.mapped.loops).root))


def test_sums_that_are_folded_twice_in_an_iteration_agree_with_the_oracle() -> None:
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
    a, b = (np.random.default_rng(0).random((24, 96), np.float32) for _ in "ab")
    options = tc.GpuOptions(
        tc.ScheduleOptions(tile=(24, 24, 1), unroll=512), block=(4, 2), stages=2, register_accumulators=1024
    )
    found = mm.compile(a, b.T.copy(), target="emulator", options=options)(a, b.T.copy())
    assert compare(mm.oracle(a, b.T.copy())["C"], np.asarray(found)).ok
