"""Recurrences whose steps have no independent dimension around them, and so much to do that each is launched."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

HEAT: Final = """
def heat(float(N) u0, float(T) f) -> (u) {
    u(0,i) = u0(i)
    for t in 0:T { u(t+1,i) = 0.5 * u(t,i) + 0.25 * u(t,max(i-1,0)) + 0.25 * u(t,min(i+1,N-1)) + f(t) }
}"""
PATHS: Final = """
def paths(float(N,N) W) -> (D) {
    D(i,j) = W(i,j)
    for k in 0:N { D(i,j) min= D(i,k) + D(k,j) }
}"""
RNN: Final = """
def rnn(float(T,H) x, float(H,H) U, float(H) h0) -> (h) {
    h(0,i) = h0(i)
    for t in 0:T {
        q(i) +=! h(t,j) * U(i,j)
        h(t+1,i) = tanh(x(t,i) + q(i))
    }
}"""
BACKWARDS: Final = """
def backwards(float(T,N) x) -> (y) {
    s(0,i) = x(0,i)
    for t in 0:T { s(t+1,i) = 0.5 * s(t,N-1-i) + x(T-1-t,i) }
    y(i) = s(T,i)
}"""

STEPS: Final[Mapping[str, tuple[str, tuple[tuple[int, ...], ...]]]] = MappingProxyType(
    {
        "heat": (HEAT, ((17001,), (5,))),
        "paths": (PATHS, ((131, 131),)),
        "rnn": (RNN, ((3, 143), (143, 143), (143,))),
        "backwards": (BACKWARDS, ((4, 16999),)),
    }
)
