"""Programs with long sums of every kind, and how their loops are changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    Leaf,
    Loop,
    LoopProgram,
    LoopTree,
)
from tc.polyhedral.pipeline import map_program
from tc.targets.options import CpuOptions, GpuOptions
from tests.polyhedral.support import machine_for, specialized

SUMS: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "in a variable": ("def f(float(N) x) -> (s) { s +=! x(i) }", ((9_001,),)),
    "in lanes": ("def f(float(N) x) -> (s) { s +=! x(i) }", ((8_192,),)),
    "in a tile": ("def f(float(M,N) x) -> (s) { s(n) +=! x(m,n) }", ((1_001, 40),)),
    "of products": ("def f(float(M,K) a, float(K,N) b) -> (c) { c(m,n) +=! a(m,k) * b(k,n) }", ((30, 200), (200, 48))),
    "of a step": (
        """
        def f(float(T,B,K) x, float(K,I) w) -> (h) {
            for t in 0:T {
                z(b,i) +=! x(t,b,k) * w(k,i)
                h(t,b,i) = z(b,i)
            }
        }""",
        ((3, 8, 200), (200, 32)),
    ),
    "of a thread": ("def f(float(M,K) a, float(K,N) b) -> (c) { c(m,n) +=! a(m,k) * b(k,n) }", ((64, 200), (200, 64))),
}


@cache
def program_of(name: str) -> LoopProgram:
    text, shapes = SUMS[name]
    options = GpuOptions(split_k_threads=()) if name == "of a thread" else CpuOptions()
    return map_program(specialized(text, shapes), options, machine_for(options)).loops


def changed(tree: LoopTree, change: Callable[[Loop], LoopTree]) -> LoopTree:
    """The tree with its loops changed, innermost first."""
    match tree:
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(changed(child, change) for child in children))
        case Guard(condition, then, otherwise):
            return Guard(condition, changed(then, change), otherwise and changed(otherwise, change))
        case Allocation(buffer, body):
            return Allocation(buffer, changed(body, change))
        case Loop():
            return change(replace(tree, body=changed(tree.body, change)))
