"""Rows of a register tile share the vectors that they read, where registers are few."""

from __future__ import annotations

import platform
import re
from itertools import count

import ml_dtypes
import numpy as np
import pytest

import tc
from tc.codegen.index.shared_vectors import SharedVector, SharedVectors
from tc.codegen.text.fragment import Fragment, named
from tc.reference.compare import compare
from tests.translated import translated

PRODUCT = "def mm({0}(M,K) A, {0}(K,N) B) -> (C) {{ C(m,n) +=! A(m,k) * B(k,n) }}"
ROWS = "def rows({0}(N,C,L) V, {0}(F,C,3) K) -> (O) {{ O(n,f,l) +=! V(n,c,l+s) * K(f,c,s) }}"
HALVED = """def halved({0}(N,C,H,W) I, {0}(F,C,3,3) K) -> (O) {{
    O(n,f,h,w) +=! I(n,c,2*h+i-1,2*w+j-1) * K(f,c,i,j) where h in 0:H/2, w in 0:W/2, 2*h+i-1 in 0:H, 2*w+j-1 in 0:W
}}"""
SECOND = "def second({0}(N,C,L) V, {0}(F,C) K) -> (O) {{ O(n,f,l) +=! V(n,c,2*l) * K(f,c) where l in 0:L/2 }}"
DTYPES = {"float": np.float32, "double": np.float64, "half": np.float16, "bfloat16": ml_dtypes.bfloat16}
Shape = tuple[int, ...]
CASES: dict[str, tuple[str, tuple[Shape, Shape]]] = {
    "product": (PRODUCT, ((37, 65), (65, 51))),
    "windows along the lanes": (ROWS, ((2, 29, 53), (23, 29, 3))),
    "windows beside the lanes": (HALVED, ((1, 40, 14, 26), (33, 40, 3, 3))),
    "every second element": (SECOND, ((2, 40, 66), (33, 40))),
}


def test_a_vector_that_is_loaded_twice_has_one_name_as_long_as_there_is_room() -> None:
    vectors = SharedVectors("c5", 2, count(3))
    type, loads = named("tc_float32x8"), [Fragment(f"tc_load_float32x8(&t_A[{n}])") for n in range(3)]
    assert [vectors.name(type, load) for load in (*loads, loads[1])] == [
        named("vector3"),
        named("vector4"),
        loads[2],
        named("vector4"),
    ]
    assert list(vectors.loaded()) == [
        SharedVector(type, named(f"vector{3 + n}"), load) for n, load in enumerate(loads[:2])
    ]


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("windows")])
def test_no_vector_is_loaded_twice_for_a_tap(name: str) -> None:
    text, shapes = CASES[name]
    f = tc.define(text.format("float")).single()
    few = translated(f, *shapes, target="cpu:x86-64-v3").source.text
    assert "tc_in_register(vector0);" in few
    for tap in re.findall(r"(?: *t_tile\d+_\w+_\d+_\d+ \+= .*;\n)+", few):
        loads = re.findall(r"tc_load_\w+\([^)]*\)", tap)
        assert len(loads) == len(set(loads))
    assert "tc_in_register(vector" not in translated(f, *shapes, target="cpu:x86-64-v4").source.text


def test_long_loops_are_left_to_the_compiler() -> None:
    text, shapes = CASES["product"]
    printed = translated(tc.define(text.format("float")).single(), *shapes, target="cpu:x86-64-v3").source.text
    assert "tc_in_register(vector" not in printed


def test_taps_that_are_written_out_read_again_what_they_share() -> None:
    text, shapes = CASES["windows beside the lanes"]
    printed = translated(tc.define(text.format("float")).single(), *shapes, target="cpu:x86-64-v3").source.text
    taps = re.findall(r"tc_read_anew\(\);\n *tc_float32x\d+ vector\d+ = ", printed)
    assert len(taps) == printed.count("  tc_read_anew();") > 1


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the target has other registers")
@pytest.mark.parametrize("type", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_oracle(name: str, type: str) -> None:
    text, shapes = CASES[name]
    rng = np.random.default_rng(len(name) + len(type))
    f = tc.define(text.format(type)).single()
    arrays = [rng.standard_normal(shape).astype(DTYPES[type]) for shape in shapes]
    kernel = f.compile(*arrays, target="cpu:x86-64")
    assert compare(next(iter(f.oracle(*arrays).values())), np.asarray(kernel(*arrays))).ok
