"""Threads that have all iterations of an unrolled loop run it without guards."""

from __future__ import annotations

import re

import numpy as np

import tc
from tc.reference.compare import compare

MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
# The last tile of 16 rows is cut to 4, and threads have two rows of others.
OPTIONS = tc.GpuOptions(tc.ScheduleOptions(tile=(16, 16, 8)), block=(8, 8), shared_memory=0)


def source(m: int, n: int) -> str:
    return MM.compile((m, 24), (24, n), target="cuda:sm_90", options=OPTIONS).source


def test_one_guard_stands_around_what_is_repeated() -> None:
    text = source(20, 32)
    before, full, partial = text.split("// S0\n")
    assert re.search(r"if \(1 <= [^{]+\) \{(?:[^{]+for [^{]+\{){4}\s+$", before)
    assert re.search(r"else \{.+\n\s+if \(c2 <= [^{]+\) \{", full, re.DOTALL)
    assert "else" not in partial


def test_whole_tiles_have_no_guard() -> None:
    assert len(re.findall(r"// S0\n", source(32, 32))) == 1


def test_both_sides_compute_the_same() -> None:
    rng = np.random.default_rng(1)
    for m, n in ((20, 32), (20, 19), (7, 33)):
        a, b = rng.standard_normal((m, 24), np.float32), rng.standard_normal((24, n), np.float32)
        found = MM(a, b, target="emulator", options=OPTIONS)
        assert compare(MM.oracle(a, b)["C"], np.asarray(found)).ok
