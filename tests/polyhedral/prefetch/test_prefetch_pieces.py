"""Loops that fill a piece of a result which goes past the caches ask for what later pieces are computed from."""

from __future__ import annotations

import re

import numpy as np

import tc
from tc.polyhedral.prefetch.prefetch_pieces import _AHEAD_BYTES
from tc.reference.compare import compare
from tests.translated import translated

ADD = tc.define("def add(float(M,N) A, float(M,N) B) -> (C) { C(m,n) = A(m,n) + B(m,n) }").add
MANY = tc.define("def f(float(M,N) A, float(M,N) B, float(M,N) D) -> (C) { C(m,n) = A(m,n) + B(m,n) * D(m,n) }").f
BIAS = tc.define("def f(float(M,N) A, float(N) B) -> (C) { C(m,n) = A(m,n) + B(n) }").f
TURN = tc.define("def f(float(M,N) A, float(N,M) B) -> (C) { C(m,n) = A(m,n) + B(n,m) }").f
ALWAYS = tc.CpuOptions(nontemporal_stores=1)


def asked(definition: tc.Comprehension, *shapes: tuple[int, ...], options: tc.CpuOptions = ALWAYS) -> list[str]:
    """The offsets of prefetches in front of a loop along lanes, by argument."""
    text = translated(definition, *shapes, target="cpu:x86-64-v3", options=options).source.text
    found = re.findall(r"__builtin_prefetch\(.*?uintptr_t\)t_(\w) \+ \(uintptr_t\)\(\((.*?)\) \* 4", text)
    return [f"{name}: {offset}" for name, offset in found]


def test_later_pieces_of_large_arguments_are_asked_for() -> None:
    ahead = _AHEAD_BYTES // 4
    shape = (512, 1024)
    assert asked(ADD, shape, shape) == [f"{name}: 1024 * c0 + 256 * c1 + {ahead}" for name in "AB"]


def test_no_more_lines_than_a_core_waits_for_at_a_time() -> None:
    assert len(asked(MANY, *((512, 1024),) * 3)) == 2


def test_only_large_arguments_that_are_read_one_piece_behind_the_other() -> None:
    assert len(asked(BIAS, (512, 1024), (1024,))) == 1  # a bias stays in the caches
    assert not asked(ADD, (512, 128), (512, 128))  # small
    assert all("A" in own for own in asked(TURN, (512, 1024), (1024, 512)))
    assert not asked(ADD, *((512, 1024),) * 2, options=tc.CpuOptions())  # the result is small enough for the caches
    assert not asked(ADD, *((512, 1024),) * 2, options=tc.CpuOptions(nontemporal_stores=1, block_prefetch=0))


def test_values_are_those_of_the_definition() -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 515, 1030), np.float32)
    found = ADD.compile(a, b, options=ALWAYS)(a, b)
    assert compare(ADD.oracle(a, b)["C"], np.asarray(found)).ok
