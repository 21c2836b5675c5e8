"""Loops over lanes that end between two vectors have shorter ones, and short ones a length that compilers know."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.translated import translated


def clauses(type: str, length: int, target: str = "cpu:x86-64-v4", other: str = "") -> list[str]:
    """What is asked of loops over rows of this length."""
    text = f"def f({type}(N,M) x, {other or type}(M) v, {type}(N) w) -> (y) {{ y(n,m) = x(n,m) * v(m) + w(n) }}"
    source = translated(tc.define(text).single(), (300, length), (length,), (300,), target=target).source.text
    return re.findall(r"#pragma omp simd(.*)", source)


@pytest.mark.parametrize(
    ("type", "length", "clause"),
    [
        ("float", 28, " simdlen(8)"),
        ("float", 40, " simdlen(8)"),
        ("float", 14, " simdlen(4)"),
        ("float", 32, ""),
        ("float", 500, ""),
        ("double", 28, ""),
        ("double", 12, " simdlen(4)"),
        ("int16", 44, " simdlen(8)"),
    ],
)
def test_fewer_lanes_leave_fewer_elements_over(type: str, length: int, clause: str) -> None:
    assert clauses(type, length) == [clause]


def test_only_of_one_size_of_elements_and_for_wide_vectors() -> None:
    assert clauses("float", 28, other="double") == [""]
    assert clauses("float", 28, target="cpu:x86-64-v2") == [""]
    assert clauses("float", 12, target="cpu:x86-64-v3") == [" simdlen(4)"]


@pytest.mark.parametrize("length", [7, 14, 27, 28, 31, 44])
def test_values_are_those_of_the_definition(length: int) -> None:
    f = tc.define("def f(float(N,M) x, float(M) v) -> (y) { y(n,m) = exp(x(n,m)) * v(m) }").single()
    random = np.random.default_rng(length)
    x, v = random.standard_normal((50, length), np.float32), random.standard_normal(length, np.float32)
    assert compare(f.oracle(x, v)["y"], np.asarray(f(x, v))).ok


@pytest.mark.parametrize("columns", [600, 333, 1000])
def test_rows_of_a_packed_operand_have_lengths_that_are_known(columns: int) -> None:
    text = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    source = translated(tc.define(text).single(), (120, 300), (300, columns), target="cpu:x86-64-v4").source.text
    copies = re.findall(r"for \(int64_t \w+ = 0; \w+ < ([^;]*); \w+ \+= 1\) \{\s*// S0_pack", source)
    # One for full panels, and one for the last.
    assert len(copies) == 2
    assert all(length.isdigit() for length in copies)


def test_packed_rows_of_a_last_panel_are_as_the_oracle_says() -> None:
    random = np.random.default_rng(0)
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").single()
    for n in (97, 333):
        a, b = (random.standard_normal(shape).astype("float32") for shape in ((30, 300), (300, n)))
        assert compare(mm.oracle(a, b)["C"], np.asarray(mm(a, b))).ok


def test_vectors_of_a_window_are_packed_in_one_piece() -> None:
    text = "def f(float(N,C,H,W) X, float(F,C,P,Q) K) -> (O) { O(n,f,h,w) +=! X(n,c,h+p,w+q) * K(f,c,p,q) }"
    options = tc.CpuOptions(register_tile=(2, 8, 1, 16))
    convolution = tc.define(text).single()
    source = translated(
        convolution, (2, 64, 58, 58), (64, 64, 3, 3), options=options, target="cpu:x86-64-v4"
    ).source.text
    assert "tc_load_float32x16(&t_packed" in source
    assert "_panel" not in source


def test_few_registers_do_not_hold_the_taps_of_a_window_beside_the_sums_of_a_tile() -> None:
    text = "def conv(float(N,C,L) I, float(F,C,K) W) -> (O) { O(n,f,l) +=! I(n,c,l+k) * W(f,c,k) }"
    shapes = (16, 64, 512), (64, 64, 3)
    few, many = (
        translated(tc.define(text).single(), *shapes, target=f"cpu:{march}").source.text
        for march in ("x86-64-v3", "x86-64-v4")
    )
    assert re.search(r"#pragma GCC unroll 1\n +for \(int64_t (\w+) = 0; \1 < 3; \1 \+= 1\)", few)
    assert "unroll 1\n" not in many


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("type", ["float", "double"])
def test_partial_vectors_touch_their_own_elements_alone(type: str, columns: int) -> None:
    mm = tc.define(f"def mm({type}(M,K) A, {type}(K,N) B) -> (C) {{ C(m,n) +=! A(m,k) * B(k,n) }}").single()
    random = np.random.default_rng(columns)
    dtype = np.dtype("float32" if type == "float" else "float64")
    a, b = random.standard_normal((24, 40)).astype(dtype), random.standard_normal((40, 8 + columns)).astype(dtype)
    around = np.full((26, 8 + columns), np.inf, dtype)
    mm(a, b, out=around[1:25])
    assert compare(mm.oracle(a, b)["C"], around[1:25]).ok
    assert np.isinf(around[[0, 25]]).all()
