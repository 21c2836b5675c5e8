"""Blocks of about ten statements, for the time that they take to schedule and to prove."""

from __future__ import annotations

from typing import Final

from benchmarks.proofs import Definition

_GRU: Final = """
def gru(float(T,B,I) x, float(H,I) Wr, float(H,I) Wz, float(H,I) Wn, float(H,H) Ur, float(H,H) Uz, float(H,H) Un,
        float(H) br, float(H) bz, float(H) bn, float(B,H) h0) -> (h) {
    h(0,b,i) = h0(b,i)
    for t in 0:T {
        r(b,i) = br(i)
        r(b,i) += x(t,b,k) * Wr(i,k)
        r(b,i) += h(t,b,j) * Ur(i,j)
        z(b,i) = bz(i)
        z(b,i) += x(t,b,k) * Wz(i,k)
        z(b,i) += h(t,b,j) * Uz(i,j)
        n(b,i) = bn(i)
        n(b,i) += x(t,b,k) * Wn(i,k)
        q(b,i) +=! h(t,b,j) * Un(i,j)
        h(t+1,b,i) = (1 - 1/(1+exp(-z(b,i)))) * tanh(n(b,i) + q(b,i)/(1+exp(-r(b,i)))) + h(t,b,i)/(1+exp(-z(b,i)))
    }
}"""
_HEAT: Final = """
def heat(float(N,M) u0, float(N,M) k) -> (u) {
    u(0,i,j) = u0(i,j)
    for t in 0:20 {
        a(i,j) = u(t,i,j) * k(i,j)
        l(i,j) = a(i,j) where i in 1:N-1, j in 1:M-1
        e(i,j) = a(i+1,j) - l(i,j) where i in 1:N-1, j in 1:M-1
        w(i,j) = a(i-1,j) - l(i,j) where i in 1:N-1, j in 1:M-1
        n(i,j) = a(i,j+1) - l(i,j) where i in 1:N-1, j in 1:M-1
        s(i,j) = a(i,j-1) - l(i,j) where i in 1:N-1, j in 1:M-1
        d(i,j) = e(i,j) + w(i,j) + n(i,j) + s(i,j) where i in 1:N-1, j in 1:M-1
        u(t+1,i,j) = u(t,i,j) where i in 0:N, j in 0:M
        u(t+1,i,j) += 0.1 * d(i,j) where i in 1:N-1, j in 1:M-1
        m(t) max=! u(t+1,i,j)
    }
}"""
_SCAN: Final = """
def selective(float(L,D) u, float(L,D) dt, float(D,N) A, float(L,N) P, float(L,N) Q, float(D) W, float(L,D) gate,
              float(D) bias) -> (y) {
    h(0,d,n) = 0.0 where d in 0:D, n in 0:N
    for t in 0:L {
        s(d) = dt(t,d) + bias(d)
        delta(d) = log(1 + exp(s(d)))
        a(d,n) = exp(delta(d) * A(d,n))
        b(d,n) = delta(d) * P(t,n)
        v(d,n) = b(d,n) * u(t,d)
        h(t+1,d,n) = a(d,n) * h(t,d,n) + v(d,n)
        z(d) +=! h(t+1,d,n) * Q(t,n)
        w(d) = z(d) + W(d) * u(t,d)
        g(d) = gate(t,d) / (1 + exp(-gate(t,d)))
        y(t,d) = w(d) * g(d)
    }
}"""


def _gru(name: str, steps: int, rows: int, inputs: int, units: int) -> Definition:
    weights = (*((units, inputs),) * 3, *((units, units),) * 3, *((units,),) * 3)
    return Definition(name, _GRU, ((steps, rows, inputs), *weights, (rows, units)))


BLOCKS: Final = (
    _gru("GRU 100x32x256", 100, 32, 256, 256),
    _gru("GRU 17x5, 33 to 21", 17, 5, 33, 21),
    Definition("heat equation 101x67", _HEAT, ((101, 67), (101, 67))),
    Definition(
        "selective scan 50x33x16",
        _SCAN,
        ((50, 33), (50, 33), (33, 16), (50, 16), (50, 16), (33,), (50, 33), (33,)),
    ),
)
