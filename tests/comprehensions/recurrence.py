"""Recurrences: blocks whose steps read what earlier ones wrote."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Array, Case, Maker, at, normal, scalar_size, uniform
from tests.comprehensions.formulas import Floats

_RNN = """
def rnn(float(T,B,I) x, float(I,H) W, float(H,H) U, float(B,H) h0) -> (h) {
    h(0,b,i) = h0(b,i) where i in 0:H
    for t in 0:T {
        z(t,b,i) +=! x(t,b,k) * W(k,i)
        z(t,b,i) += h(t,b,j) * U(j,i)
        h(t+1,b,i) = tanh(z(t,b,i))
    }
}
"""
_LSTM = """
def lstm(float(T,B,I) x, float(4,H,I) W, float(4,H,H) U, float(4,H) v, float(B,H) h0, float(B,H) c0) -> (h, c) {
    h(0,b,i) = h0(b,i)
    c(b,i) = c0(b,i)
    for t in 0:T {
        z(b,g,i) = v(g,i) where b in 0:B
        z(b,g,i) += x(t,b,k) * W(g,i,k)
        z(b,g,i) += h(t,b,j) * U(g,i,j)
        c(b,i) = c(b,i) / (1 + exp(-z(b,1,i))) + tanh(z(b,2,i)) / (1 + exp(-z(b,0,i)))
        h(t+1,b,i) = tanh(c(b,i)) / (1 + exp(-z(b,3,i)))
    }
}
"""
_GRU = """
def gru(float(T,B,I) x, float(3,H,I) W, float(3,H,H) U, float(3,H) v, float(3,H) w, float(B,H) h0) -> (h) {
    h(0,b,i) = h0(b,i)
    for t in 0:T {
        p(t,b,g,i) +=! x(t,b,k) * W(g,i,k)
        q(b,g,i) +=! h(t,b,j) * U(g,i,j)
        r(b,i) = 1 / (1 + exp(-(p(t,b,0,i) + v(0,i) + q(b,0,i) + w(0,i))))
        u(b,i) = 1 / (1 + exp(-(p(t,b,1,i) + v(1,i) + q(b,1,i) + w(1,i))))
        n(b,i) = tanh(p(t,b,2,i) + v(2,i) + r(b,i) * (q(b,2,i) + w(2,i)))
        h(t+1,b,i) = (1 - u(b,i)) * n(b,i) + u(b,i) * h(t,b,i)
    }
}
"""
_SELECTIVE_SCAN = """
def selective_scan(float(B,L,D) x, float(B,L,D) dt, float(D,N) A, float(B,L,N) P, float(B,L,N) Q) -> (y) {
    s(b,d,n) = float(0) where b in 0:B, d in 0:D, n in 0:N
    for t in 0:L {
        s(b,d,n) = exp(dt(b,t,d) * A(d,n)) * s(b,d,n) + dt(b,t,d) * P(b,t,n) * x(b,t,d)
        y(b,t,d) +=! s(b,d,n) * Q(b,t,n)
    }
}
"""


def _filtered(x: Floats, b: Floats, a: Floats) -> tuple[Floats]:
    from scipy.signal import lfilter  # which takes seconds to import, and whole programs import the corpus

    return (np.asarray(lfilter(b, [1, *a], x, axis=1)) if x.size else x,)


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


def _rnn(x: Floats, w: Floats, u: Floats, h: Floats) -> tuple[Array]:
    states = [h]
    for step in x:
        states.append(np.tanh(step @ w + states[-1] @ u))
    return (np.array(states),)


def _lstm(x: Floats, w: Floats, u: Floats, v: Floats, h: Floats, c: Floats) -> tuple[Array, Array]:
    states = [h]
    for step in x:
        i, f, g, o = (step @ w[n].T + states[-1] @ u[n].T + v[n] for n in range(4))
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        states.append(_sigmoid(o) * np.tanh(c))
    return np.array(states), c


def _gru(x: Floats, w: Floats, u: Floats, v: Floats, b: Floats, h: Floats) -> tuple[Array]:
    states = [h]
    for step in x:
        inputs = [step @ w[n].T + v[n] for n in range(3)]
        own = [states[-1] @ u[n].T + b[n] for n in range(3)]
        reset, update = _sigmoid(inputs[0] + own[0]), _sigmoid(inputs[1] + own[1])
        states.append((1 - update) * np.tanh(inputs[2] + reset * own[2]) + update * states[-1])
    return (np.array(states),)


def _selective_scan(x: Floats, dt: Floats, a: Floats, p: Floats, q: Floats) -> tuple[Array]:
    state, found = np.zeros((x.shape[0], *a.shape)), np.zeros_like(x)
    for t in range(x.shape[1] if x.size else 0):
        state = np.exp(dt[:, t, :, None] * a) * state + dt[:, t, :, None] * p[:, t, None, :] * x[:, t, :, None]
        found[:, t] = (state * q[:, t, None, :]).sum(-1)
    return (found,)


def _fibonacci(x: Floats) -> tuple[Array]:
    found = [1, 1]
    while len(found) < len(x):
        found.append((found[-1] + found[-2] + 2**31) % 2**32 - 2**31)
    return (np.array(found[: max(len(x), 2)]),)


def _viterbi(start: Floats, transition: Floats, emission: Floats) -> tuple[Array]:
    scores = [start + emission[0]]
    for step in emission[1:]:
        scores.append((scores[-1][:, None] + transition).max(0) + step)
    return (np.array(scores),)


def _shortest(distance: Floats) -> tuple[Array]:
    found = distance.copy()
    for k in range(len(found)):
        found = np.minimum(found, found[:, k, None] + found[None, k, :])
    return (found,)


def _jacobi(f: Floats, sweeps: int) -> tuple[Array]:
    u = f.copy()
    for _ in range(sweeps):
        u[1:-1] = 0.5 * (u[:-2] + u[2:])
    return (u,)


def _gauss_seidel(f: Floats, sweeps: int) -> tuple[Array]:
    u = f.copy()
    for _ in range(sweeps):
        for i in range(1, len(u) - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1])
    return (u,)


def _waves(u: Floats, steps: int) -> tuple[Array]:
    states = [u, u]
    for _ in range(steps):
        last = np.pad(states[-1], 1)
        around = last[:-2, 1:-1] + last[2:, 1:-1] + last[1:-1, :-2] + last[1:-1, 2:]
        states.append(2 * states[-1] - states[-2] + np.float64(0.125) * (around - 4 * states[-1]))
    return (np.array(states),)


def _backwards(r: Floats, g: Floats) -> tuple[Array]:
    found = [np.zeros(r.shape[1])]
    for step, discount in zip(r[::-1], g[::-1], strict=True):
        found.append(step + discount * found[-1])
    return (np.array(found[::-1]),)


def _prefix_products(x: Floats) -> tuple[Array]:
    return (np.cumprod(x, axis=1),)


def _weights(*shape: str | int) -> Maker:
    """Small enough that steps do not magnify errors."""
    return uniform(-0.15, 0.15, *shape)


_TBIH = "T B I H"

CASES = (
    Case(
        "recurrent_network",
        "torch.nn.RNN",
        _RNN,
        {"x": normal("T", "B", "I"), "W": _weights("I", "H"), "U": _weights("H", "H"), "h0": normal("B", "H")},
        _rnn,
        at(_TBIH, 10, 16, 32, 32),
        (at(_TBIH, 1, 1, 1, 1), at(_TBIH, 2, 3, 5, 7), at(_TBIH, 0, 2, 3, 4), at(_TBIH, 3, 0, 2, 2)),
        even_sizes=at(_TBIH, 8, 8, 16, 16),
        terms=("T", "H"),
    ),
    Case(
        "lstm",
        "torch.nn.LSTM",
        _LSTM,
        {
            "x": normal("T", "B", "I"),
            "W": _weights(4, "H", "I"),
            "U": _weights(4, "H", "H"),
            "v": normal(4, "H"),
            "h0": normal("B", "H"),
            "c0": normal("B", "H"),
        },
        _lstm,
        at(_TBIH, 10, 16, 32, 32),
        (at(_TBIH, 1, 1, 1, 1), at(_TBIH, 2, 3, 5, 7), at(_TBIH, 0, 2, 3, 4), at(_TBIH, 3, 0, 2, 2)),
        even_sizes=at(_TBIH, 8, 8, 16, 16),
        terms=("T", "H"),
    ),
    Case(
        "gru",
        "torch.nn.GRU",
        _GRU,
        {
            "x": normal("T", "B", "I"),
            "W": _weights(3, "H", "I"),
            "U": _weights(3, "H", "H"),
            "v": normal(3, "H"),
            "w": normal(3, "H"),
            "h0": normal("B", "H"),
        },
        _gru,
        at(_TBIH, 10, 16, 32, 32),
        (at(_TBIH, 1, 1, 1, 1), at(_TBIH, 2, 3, 5, 7), at(_TBIH, 0, 2, 3, 4), at(_TBIH, 3, 0, 2, 2)),
        even_sizes=at(_TBIH, 8, 8, 16, 16),
        terms=("T", "H"),
    ),
    Case(
        "selective_scan",
        "Gu and Dao, Mamba, arXiv 2312.00752, Algorithm 2",
        _SELECTIVE_SCAN,
        {
            "x": normal("B", "L", "D"),
            "dt": uniform(0.01, 0.5, "B", "L", "D"),
            "A": uniform(-2, -0.1, "D", "N"),
            "P": normal("B", "L", "N"),
            "Q": normal("B", "L", "N"),
        },
        _selective_scan,
        at("B L D N", 2, 64, 32, 16),
        (at("B L D N", 1, 1, 1, 1), at("B L D N", 2, 13, 7, 5), at("B L D N", 2, 0, 3, 2), at("B L D N", 0, 3, 3, 2)),
        even_sizes=at("B L D N", 8, 16, 8, 8),
        terms=("L", "N"),
    ),
    Case(
        "fibonacci",
        "numbers that wrap",
        """
        def fibonacci(float(N) x) -> (f) {
            f(i) = int32(1) where i in 0:2
            for i in 2:N { f(i) = f(i-1) + f(i-2) }
        }
        """,
        {"x": normal("N")},
        _fibonacci,
        at("N", 90),
        (at("N", 2), at("N", 3), at("N", 13)),
        even_sizes=at("N", 10),
    ),
    Case(
        "second_order_filter",
        "scipy.signal.lfilter",
        """
        def filter(float(C,N) x, float(3) b, float(2) a) -> (y) {
            for i in 0:N {
                y(c,i) = b(0) * x(c,i) + (i >= 1 ? b(1) * x(c,i-1) - a(0) * y(c,i-1) : 0)
                y(c,i) = y(c,i) + (i >= 2 ? b(2) * x(c,i-2) - a(1) * y(c,i-2) : 0)
            }
        }
        """,
        {"x": normal("C", "N"), "b": normal(3), "a": uniform(-0.4, 0.4, 2)},
        _filtered,
        at("C N", 8, 256),
        (at("C N", 1, 1), at("C N", 3, 129), at("C N", 2, 0)),
        even_sizes=at("C N", 16, 24),
        terms=("N",),
    ),
    Case(
        "viterbi",
        "the best path through a hidden Markov model",
        """
        def viterbi(float(S) start, float(S,S) A, float(T,S) E) -> (v) {
            v(0,s) = start(s) + E(0,s)
            for t in 1:T {
                v(t,s) max=! v(t-1,r) + A(r,s)
                v(t,s) = v(t,s) + E(t,s)
            }
        }
        """,
        {"start": normal("S"), "A": normal("S", "S"), "E": normal("T", "S")},
        _viterbi,
        at("T S", 50, 24),
        (at("T S", 1, 1), at("T S", 2, 3), at("T S", 13, 7)),
        even_sizes=at("T S", 9, 16),
        terms=("T",),
    ),
    Case(
        "floyd_warshall",
        "all shortest paths; a step reads copies of one row and one column",
        """
        def floyd_warshall(float(N,N) w) -> (d) {
            d(i,j) = w(i,j)
            for k in 0:N { d(i,j) min= d(i,k) + d(k,j) }
        }
        """,
        {"w": uniform(-0.1, 4, "N", "N")},
        _shortest,
        at("N", 40),
        (at("N", 1), at("N", 7), at("N", 0), at("N", 33)),
        even_sizes=at("N", 16),
        terms=("N",),
    ),
    Case(
        "jacobi",
        "sweeps that read what the last one wrote",
        """
        def jacobi(float(N) f, int S) -> (u) {
            u(i) = f(i)
            for s in 0:S { u(i) = float(0.5) * (u(i-1) + u(i+1)) where i in 0:N, 1 <= i, i < N-1 }
        }
        """,
        {"f": normal("N"), "S": scalar_size("S")},
        _jacobi,
        at("N S", 100, 10),
        (at("N S", 3, 1), at("N S", 13, 7), at("N S", 5, 0)),
        even_sizes=at("N S", 24, 8),
        terms=("S",),
    ),
    Case(
        "gauss_seidel",
        "a block in a block: every element needs the one before it",
        """
        def gauss_seidel(float(N) f, int S) -> (u) {
            u(i) = f(i)
            for s in 0:S {
                for i in 0:N { u(i) = float(0.5) * (u(i-1) + u(i+1)) where 1 <= i, i < N-1 }
            }
        }
        """,
        {"f": normal("N"), "S": scalar_size("S")},
        _gauss_seidel,
        at("N S", 100, 10),
        (at("N S", 3, 1), at("N S", 13, 7), at("N S", 5, 0)),
        even_sizes=at("N S", 24, 8),
        terms=("S",),
    ),
    Case(
        "wave_equation",
        "time steps of a stencil, each from the last two",
        """
        def waves(float(H,W) u0, int T) -> (u) {
            u(k,y,x) = u0(y,x) where k in 0:2
            for t in 0:T {
                a(y,x) = (y > 0 ? u(t+1,y-1,x) : 0) + (y < H-1 ? u(t+1,y+1,x) : 0) where y in 0:H, x in 0:W
                a(y,x) = a(y,x) + (x > 0 ? u(t+1,y,x-1) : 0) + (x < W-1 ? u(t+1,y,x+1) : 0) where x in 0:W
                u(t+2,y,x) = 2 * u(t+1,y,x) - u(t,y,x) + float(0.125) * (a(y,x) - 4 * u(t+1,y,x))
            }
        }
        """,
        {"u0": normal("H", "W"), "T": scalar_size("T")},
        _waves,
        at("H W T", 32, 32, 8),
        (at("H W T", 1, 1, 1), at("H W T", 5, 7, 3), at("H W T", 4, 3, 0)),
        even_sizes=at("H W T", 16, 16, 8),
        terms=("T", "T"),
    ),
    Case(
        "discounted_returns",
        "a recurrence that runs backwards",
        """
        def returns(float(T,B) r, float(T,B) g) -> (v) {
            v(T,b) = float(0) where b in 0:B
            for t in 0:T { v(T-1-t,b) = r(T-1-t,b) + g(T-1-t,b) * v(T-t,b) }
        }
        """,
        {"r": normal("T", "B"), "g": uniform(0.8, 1, "T", "B")},
        _backwards,
        at("T B", 100, 32),
        (at("T B", 1, 1), at("T B", 7, 13), at("T B", 0, 3)),
        even_sizes=at("T B", 16, 16),
        terms=("T",),
    ),
    Case(
        "prefix_products",
        "rows that are independent of each other",
        """
        def prefix(float(N,M) x) -> (y) {
            for j in 0:M { y(i,j) = j > 0 ? y(i,j-1) * x(i,j) : x(i,j) }
        }
        """,
        {"x": uniform(0.9, 1.1, "N", "M")},
        _prefix_products,
        at("N M", 32, 64),
        (at("N M", 1, 1), at("N M", 7, 33), at("N M", 3, 0)),
        even_sizes=at("N M", 16, 16),
        terms=("M",),
    ),
)
