"""Statements on neighbouring elements: each thread has a run of them, and accesses memory up to 16 bytes at a time."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.turns import one_in
from tests.wide import ROWS, TEXTS, N, arrays


def check(text: str, inputs: list[np.ndarray[Any, Any]]) -> str:
    """Compares a call on the emulator with the oracle; the source."""
    definition = tc.define(text).single()
    results = definition(*inputs, target="emulator")
    expected = definition.oracle(*inputs)
    for name, values in zip(
        definition.program.results, results if isinstance(results, tuple) else (results,), strict=True
    ):
        assert compare(expected[name], np.asarray(values)).ok, name
    return definition.compile(*inputs, target="emulator").source


@one_in(2)
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("name", TEXTS)
def test_runs_agree_with_the_oracle(name: str, shift: int) -> None:
    assert "tc_require_aligned" in check(TEXTS[name], arrays(TEXTS[name], ((N,), (N,)), shift))


@pytest.mark.parametrize(("columns", "wide"), [(516, True), (514, True), (515, False)])
def test_runs_of_rows_are_as_long_as_rows_allow(columns: int, wide: bool) -> None:
    inputs = arrays(ROWS, ((4100, columns), (columns,), (4100,)))
    assert ("tc_require_aligned" in check(ROWS, inputs)) is wide


@pytest.mark.parametrize(
    "text",
    [
        "def shifted(float(N) a) -> (c) { c(i) = a(i + 1) where i in 0:N-1 }",
        "def reversed(float(N) a) -> (c) { c(i) = a(N - 1 - i) }",
        "def gathered(float(N) a, int32(N) b) -> (c) { c(i) = a(b(i)) }",
        "def sums(float(N,M) a) -> (c) { c(i) +=! a(i,k) }",
    ],
)
def test_what_is_read_otherwise_has_no_runs(text: str) -> None:
    shapes = ((N // 8, 8),) if "sums" in text else ((N,),) * (2 if "gathered" in text else 1)
    assert "tc_require_aligned" not in tc.define(text).single().compile(*shapes, target="emulator").source


def test_few_points_are_shared_by_as_many_threads_as_there_are() -> None:
    assert (
        "tc_require_aligned" not in tc.define(TEXTS["add"]).single().compile((4096,), (4096,), target="emulator").source
    )


@pytest.mark.parametrize(
    ("name", "loads", "stores"),
    [("add", 2, 1), ("halves", 2, 1), ("bytes", 2, 1), ("two", 2, 2), ("again", 2, 1), ("widening", 0, 1)],
)
def test_the_compiler_makes_single_accesses_of_them(name: str, loads: int, stores: int) -> None:
    pytest.importorskip("cuda.bindings")
    from tests.cuda.nvrtc_ptx import ptx_of

    many = (4 * N,)
    text = ptx_of(tc.define(TEXTS[name]).single().compile(many, many, target="cuda:sm_90").source, "sm_90")
    assert len(re.findall(r"ld\.global(\.nc)?\.v4", text)) == loads
    assert len(re.findall(r"st\.global\.v4", text)) == stores
    assert "ld.local" not in text


def test_a_kernel_asks_once_where_its_tensors_begin() -> None:
    pytest.importorskip("cuda.bindings")
    source = tc.define(TEXTS["add"]).single().compile((N,), (N,), target="cuda:sm_90").source
    assert source.count("& 15) == 0)") == 1
    assert "*(uint4 *)&t_c[offset0] = *(const uint4 *)&t_c_piece[0];" in source
