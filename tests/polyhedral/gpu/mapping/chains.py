"""Layers of small networks, one after the other or side by side, and shapes of their tensors."""

from __future__ import annotations

from typing import Final

Shapes = tuple[tuple[int, ...], ...]
# Rows of the matrices lie across memory.
TURNED: Final = """
def f(float(M,N) I, float(O,N) V, float(O) u, float(P,O) W, float(P) v) -> (Y, Z) {
    Y(m,o) +=! I(m,n) * V(o,n)
    Y(m,o) = fmax(Y(m,o) + u(o), 0)
    Z(m,p) +=! Y(m,o) * W(p,o)
    Z(m,p) = fmax(Z(m,p) + v(p), 0)
}"""
PLAIN: Final = """
def f(float(M,N) I, float(N,O) V, float(O) u, float(O,P) W, float(P) v) -> (Z) {
    Y(m,o) +=! I(m,n) * V(n,o)
    X(m,o) = fmax(Y(m,o) + u(o), 0)
    Z(m,p) +=! X(m,o) * W(o,p)
    Z(m,p) = Z(m,p) + v(p)
}"""
# Each row of the second layer needs another one of the first.
OTHER_ROWS: Final = """
def f(float(M,N) I, float(O,N) V, float(O) u, float(P,O) W, float(P) v) -> (Y, Z) {
    Y(m,o) +=! I(m,n) * V(o,n)
    Z(m,p) +=! Y(M-1-m,o) * W(p,o) where m in 0:M
}"""
APART: Final = """
def f(float(M,N) I, float(O,N) V, float(O) u, float(P,N) W, float(P) v) -> (Y, Z) {
    Y(m,o) +=! I(m,n) * V(o,n)
    Z(m,p) +=! I(m,n) * W(p,n)
}"""


def shapes(text: str, rows: int, n: int, o: int, p: int) -> Shapes:
    match text:
        case str() if text is PLAIN:
            return (rows, n), (n, o), (o,), (o, p), (p,)
        case str() if text is APART:
            return (rows, n), (o, n), (o,), (p, n), (p,)
        case _:
            return (rows, n), (o, n), (o,), (p, o), (p,)
