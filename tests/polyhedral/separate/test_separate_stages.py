"""Software-pipelined loops: the copies before the first iteration stand apart from the loop."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

import tc
from tc.polyhedral.ir.loops import IndexLiteral, Loop, LoopTree
from tc.polyhedral.separate import separate_stages as separating
from tc.reference.compare import compare
from tests.translated import translated

MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
OPTIONS = tc.GpuOptions(tc.ScheduleOptions(tile=(16, 16, 8)), block=(8, 8))


def source(stages: int, k: int = 128, options: tc.GpuOptions = OPTIONS) -> str:
    own = replace(options, stages=stages)
    return translated(MM, (35, k), (k, 33), target="cuda:sm_90", options=own).source.text


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_the_prologue_copies_and_the_loop_begins_at_the_first_iteration(stages: int) -> None:
    before, loop, rest = source(stages).partition("for (int c0 = 0; c0 < 16; c0 += 1) {\n")
    assert loop
    assert "// S0_pack1" in before
    assert "// S0\n" not in before
    assert before.count("__syncthreads();") == 1
    assert rest.count("__syncthreads();") == 1
    assert f"if (c0 <= {16 - stages}" in rest
    assert "c0 >= 0" not in rest


def test_an_iteration_is_no_loop() -> None:
    before, _, _ = source(2).partition("for (int c0 = 0;  c0 < 16")
    assert "c0 = -1" not in before
    assert "for (int c0 = -2; c0 < 0; c0 += 1)" in source(3)


def test_where_threads_hold_many_results_there_is_one_loop() -> None:
    many = tc.GpuOptions(tc.ScheduleOptions(tile=(32, 32, 8)), block=(4, 8))
    assert "for (int c0 = -1; c0 < 16; c0 += 1)" in source(2, options=many)


@pytest.mark.parametrize("stages", [2, 4])
def test_parts_compute_what_the_loop_computes(stages: int) -> None:
    random = np.random.default_rng(stages)
    a, b = random.standard_normal((35, 68), np.float32), random.standard_normal((68, 33), np.float32)
    found = MM(a, b, target="emulator", options=replace(OPTIONS, stages=stages))
    assert compare(MM.oracle(a, b)["C"], np.asarray(found)).ok


@pytest.mark.parametrize("moved", [(1, 0), (0, -1), (-1, 0), (0, 1)])
def test_parts_that_leave_out_or_repeat_iterations_are_refused(moved: tuple[int, int]) -> None:
    part = separating._part

    def shifted(loop: Loop, first: int, last: int) -> LoopTree:
        return (
            part(loop, first, last)
            if first < 0
            else replace(loop, lower=_plus(first, moved[0]), upper=_plus(last, moved[1]))
        )

    with patch.object(separating, "_part", shifted):
        assert is_refused()


def test_barriers_of_a_prologue_that_are_missing_are_refused() -> None:
    part = separating._part

    def shorter(loop: Loop, first: int, last: int) -> LoopTree:
        return part(loop, first + (first < 0), last)

    with patch.object(separating, "_part", shorter):
        assert is_refused()


def is_refused() -> bool:
    """Whether a definition that nothing was compiled of before is not proven, or only without the copies."""
    definition = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
    try:
        kernel = definition.compile((35, 128), (128, 33), target="emulator", options=replace(OPTIONS, stages=3))
    except tc.VerificationError:
        return True
    return "t_shared" not in kernel.source


def _plus(number: int, moved: int) -> IndexLiteral:
    return IndexLiteral(number + moved)
