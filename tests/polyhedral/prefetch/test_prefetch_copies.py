"""Copies of rows that lie far apart ask for the rows that they read some iterations later."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.polyhedral.prefetch.prefetch_copies import _AHEAD
from tc.reference.compare import compare
from tests.translated import translated

MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
TMM = tc.define("def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }").tmm


def copies(
    definition: tc.Comprehension, *shapes: tuple[int, int], options: tc.CpuOptions | None = None
) -> list[tuple[str, str]]:
    """Of every prefetch in front of a copy along lanes: what is asked for, and what is copied."""
    text = translated(definition, *shapes, target="cpu:x86-64-v4", options=options).source.text
    prefetch = r"__builtin_prefetch\(.*?uintptr_t\)t_B \+ \(uintptr_t\)\(\((.*?)\) \* 4 .*\n *\}\n"
    lanes = r" *#pragma omp simd\n *for .*\n *// S0_pack0\n *t_packed0_B\[.*\] = t_B\[(.*)\];"
    return [(match[1], match[2]) for match in re.finditer(prefetch + lanes, text)]


@pytest.mark.parametrize("row", [1024, 2048])
def test_a_later_row_is_asked_for(row: int) -> None:
    found = copies(MM, (512, 1024), (1024, row))
    assert found
    for asked, copied in found:
        lane = re.sub(r" \+ c\d\b(?!.* \* )", "", copied, count=1)
        assert asked == f"{lane} + {_AHEAD * row}"


def test_only_rows_that_are_short_and_far_apart_in_large_tensors() -> None:
    assert not copies(MM, (512, 1024), (1024, 128))  # small
    assert not copies(MM, (512, 4096), (4096, 128))  # near
    assert not copies(TMM, (512, 1024), (1024, 1024))  # transposed in registers
    assert not copies(MM, (512, 1024), (1024, 1024), options=tc.CpuOptions(block_prefetch=0))


def test_values_are_those_of_the_definition() -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((70, 1030), np.float32), random.standard_normal((1030, 515), np.float32)
    assert compare(MM.oracle(a, b)["C"], np.asarray(MM(a, b))).ok
