"""Barriers: where they are needed the proof and the emulator both miss them, and nowhere do threads pass them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import islpy as isl
import numpy as np
import pytest

import tc
from tc.kernel import Kernel
from tc.polyhedral.counterexample import Violation
from tc.polyhedral.place_barriers import place_barriers
from tc.polyhedral.scop import Scop
from tc.polyhedral.tree import Band, Extension, Filter, Leaf, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.verify import Proof

MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
CONVOLUTION = """
def conv(float(N,C,H,W) X, float(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! X(n,c,h+p,w+q) * K(f,c,p,q) }
"""
CHAIN = """
def chain(float(M,K) A, float(K,N) B, float(N,P) D) -> (C, E) {
  C(m,n) +=! A(m,k) * B(k,n)
  E(m,p) +=! C(m,n) * D(n,p)
}
"""
SUMS = "def sums(float(M,N) X, float(N) y) -> (O) { O(m) +=! X(m,n) * y(n) }"
PROGRAMS: dict[str, tuple[str, tuple[tuple[int, ...], ...], tc.GpuOptions]] = {
    "mm": (MM, ((37, 19), (19, 21)), tc.GpuOptions(tc.ScheduleOptions(tile=(8, 16, 4)), block=(8, 4))),
    "mm, one tile after another": (
        MM,
        ((37, 19), (19, 21)),
        tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4)), block=(8, 4), grid=(1, 2)),
    ),
    "convolution": (
        CONVOLUTION,
        ((2, 3, 9, 11), (4, 3, 3, 3)),
        tc.GpuOptions(tc.ScheduleOptions(tile=(1, 2, 4, 8)), block=(8, 4, 2)),
    ),
    "chain": (
        CHAIN,
        ((17, 9), (9, 13), (13, 11)),
        tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4), fusion=tc.Fusion.MAXIMAL), block=(4,)),
    ),
    "sums": (SUMS, ((37, 50), (50,)), tc.GpuOptions(tc.ScheduleOptions(tile=(16, 8)), block=(8,))),
}


def without(node: Node, barrier: str) -> Node:
    match node:
        case Leaf():
            return node
        case Sequence(filters):
            kept = [f for f in filters if statement_names(f.domain) != (barrier,)]
            return Sequence(tuple(Filter(_others(f.domain, barrier), without(f.child, barrier)) for f in kept))
        case Band(members, permutable, child):
            changed = (
                replace(m, function=m.function.intersect_domain(_others(m.function.domain(), barrier))) for m in members
            )
            return Band(tuple(changed), permutable, without(child, barrier))
        case Extension():
            return replace(node, child=without(node.child, barrier))


def _others(domain: isl.UnionSet, barrier: str) -> isl.UnionSet:
    pieces: list[isl.Set] = []
    domain.foreach_set(pieces.append)
    found = isl.UnionSet.empty(domain.get_space())
    for piece in pieces:
        if piece.get_tuple_name() != barrier:
            found = found.union(isl.UnionSet.from_set(piece))
    return found


def dropping(barrier: str | None) -> Callable[[ScheduleTree, Scop], tuple[ScheduleTree, Scop]]:
    def place(tree: ScheduleTree, scop: Scop) -> tuple[ScheduleTree, Scop]:
        tree, scop = place_barriers(tree, scop)
        if barrier is None:
            return tree, scop
        assert barrier in scop.barrier_names
        kept = tuple(b for b in scop.barriers if b.get_tuple_name() != barrier)
        return (
            ScheduleTree(_others(tree.domain, barrier), without(tree.root, barrier)),
            replace(scop, barriers=kept),
        )

    return place


def compile_without(barrier: str | None, name: str, *, proven: bool) -> Kernel:
    text, shapes, options = PROGRAMS[name]
    comprehension = tc.define(text).single()
    with patch("tc.polyhedral.passes.place_barriers", dropping(barrier)):
        if proven:
            return comprehension.compile(*shapes, target="emulator", options=options)
        with patch("tc.polyhedral.pipeline.prove", lambda *_: Proof(0, 0, 0, 0)):
            return comprehension.compile(*shapes, target="emulator", options=options)


def barriers(name: str) -> list[str]:
    text, shapes, options = PROGRAMS[name]
    kernel = tc.define(text).single().compile(*shapes, target="emulator", options=options)
    return sorted(kernel.barriers)


def is_right(kernel: Kernel, name: str) -> bool:
    text, shapes, _ = PROGRAMS[name]
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    found, expected = kernel(*arrays), tc.define(text).single().reference(*arrays)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_barrier_is_needed_and_both_the_proof_and_the_emulator_miss_it(name: str) -> None:
    found = barriers(name)
    assert found
    assert is_right(compile_without(None, name, proven=True), name)
    for barrier in found:
        with pytest.raises(tc.VerificationError, match=Violation.RACE.value):
            compile_without(barrier, name, proven=True)
        assert not is_right(compile_without(barrier, name, proven=False), name), barrier
