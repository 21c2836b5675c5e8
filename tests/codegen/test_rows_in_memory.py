"""What vectors cannot express at the end of a register tile runs in one loop over its rows, in whole lanes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tc
from tc.dispatch.kernel import Kernel
from tc.polyhedral.transform.buffer_layouts import tile_strides
from tests.arrays import array
from tests.turns import every, one_in

Numbers = np.ndarray[Any, np.dtype[np.float32]]

# What follows the product, and the same in NumPy.
ENDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "tanh": ("tanh(C(m,n))", np.tanh),
    "twice": ("tanh(C(m,n)) C(m,n) = log1p(exp(C(m,n)))", lambda c: np.log1p(np.exp(np.tanh(c)))),
    "beside": ("tanh(C(m,n)) * b(n)", lambda c: np.tanh(c) * np.arange(c.shape[1], dtype=np.float32)),
    "across": ("tanh(C(m,n)) * m", lambda c: np.tanh(c) * np.arange(len(c), dtype=np.float32)[:, None]),
}


def product(
    rows: int, columns: int, end: str, tile: tuple[int, int] = (6, 32)
) -> tuple[Kernel, Numbers, Numbers, Numbers]:
    generator = np.random.default_rng(0)
    a = generator.standard_normal((rows, 9)).astype(np.float32)
    b = generator.standard_normal((9, columns)).astype(np.float32) / np.float32(4)
    text = f"""
    def ended(float(M,K) A, float(K,N) B, float(N) b) -> (C) {{
        C(m,n) +=! A(m,k) * B(k,n)
        C(m,n) = {ENDS[end][0]}
    }}
    """
    weights = np.arange(columns, dtype=np.float32)
    options = tc.CpuOptions(register_tile=tile)
    return tc.define(text).ended.compile(a, b, weights, options=options), a, b, weights


@one_in(2)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("columns", every(2, [32, 46, 61, 64, 71]))
@pytest.mark.parametrize("rows", every(2, [12, 15]))
def test_results_are_those_of_numpy(rows: int, columns: int, end: str) -> None:
    kernel, a, b, weights = product(rows, columns, end)
    expected = ENDS[end][1](a.astype(np.float64) @ b.astype(np.float64))
    np.testing.assert_allclose(array(kernel(a, b, weights)), expected, rtol=1e-5, atol=1e-5)


def test_the_text_of_a_statement_is_that_of_one_row() -> None:
    source = product(12, 32, "tanh")[0].source
    assert source.count(" = tc_tanh_float32(") == 1
    assert re.search(r"for \(.* < 6; .*\n( *#pragma.*\n)? *for \(.* < 32; ", source)


@pytest.mark.parametrize(("end", "lanes"), [("tanh", "16"), ("beside", "14")])
def test_lanes_beyond_a_row_are_computed_where_all_they_read_is_the_tile(end: str, lanes: str) -> None:
    """The last vector of 46 columns has 14 lanes in use, and what is beside a row of memory must not be read."""
    source = product(12, 46, end)[0].source
    loops = re.findall(r"< (\d+); c\d+ \+= 1\) \{\n *// S\d+\n.* = tc_tanh_float32", source)
    assert set(loops) == {"32", lanes}


@pytest.mark.parametrize(("lanes", "whole"), [(31, 32), (21, 24), (20, 20), (7, 8)])
def test_rows_of_ragged_tiles_have_room_for_whole_vectors(lanes: int, whole: int) -> None:
    kernel, a, b, weights = product(12, 2 * lanes, "tanh", (6, lanes))
    assert f"float t_tile0_C[{6 * whole}]" in kernel.source
    assert f"< {whole}; " in kernel.source
    expected = np.tanh(a.astype(np.float64) @ b.astype(np.float64))
    np.testing.assert_allclose(array(kernel(a, b, weights)), expected, rtol=1e-5, atol=1e-5)


def test_strides_of_tiles_round_the_last_vector_of_a_row_up() -> None:
    assert tile_strides((4, 31), (0, 1)) == (32, 1)
    assert tile_strides((31, 4), (1, 0)) == (1, 32)
    assert tile_strides((2, 3, 20), (0, 1, 2)) == (60, 20, 1)
    assert tile_strides((5, 32), (0, 1)) == (32, 1)
