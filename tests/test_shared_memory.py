"""Buffers of one kernel in shared memory: each has bytes of its own, for the proof knows them by name."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.turns import every, one_in

# Two nests of one kernel with a single tile each: no barrier stands between what the first reads and the second copies.
PAIR = tc.define("""
def pair(float(M,K) A, float(K,N) B, float(M,L) X, float(L,N) D) -> (C, E) {
  C(m,n) +=! A(m,k) * B(k,n)
  E(m,n) +=! X(m,l) * D(l,n) * C(m,n)
}
""").pair


@one_in(2)
@pytest.mark.parametrize("fusion", tc.Fusion)
@pytest.mark.parametrize("stages", every(2, [2, 1]))
def test_buffers_do_not_share_bytes(fusion: tc.Fusion, stages: int) -> None:
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 16), fusion=fusion), block=(4, 4), stages=stages)
    random = np.random.default_rng(7)
    arrays = [random.standard_normal(shape, np.float32) for shape in ((19, 13), (13, 21), (19, 11), (11, 21))]
    kernel = PAIR.compile(*arrays, target="emulator", options=options)
    together = 0
    for part in kernel.source.split("static __attribute__((noinline)) void tc_kernel_")[1:]:
        begins = dict(re.findall(r"(t_shared\d+_\w+) = \(float \*\)\(team->shared \+ (\d+)\)", part))
        assert len(set(begins.values())) == len(begins), kernel.source
        together = max(together, len(begins))
    assert together == (2 if fusion is tc.Fusion.MINIMAL else 4)
    oracle = PAIR.oracle(*arrays)
    results = kernel(*arrays)
    assert isinstance(results, tuple)
    for (name, expected), found in zip(oracle.items(), results, strict=True):
        assert compare(expected, np.asarray(found)).ok, name
