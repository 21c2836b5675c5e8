"""Definitions whose sizes stay open in any dimension of what is passed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tc
from tests.symbolic.programs import MM


@dataclass(frozen=True)
class Opened:
    """A definition with sizes that are open up to ``most``; ``shapes`` name them, or have numbers.

    ``indices``: integer arguments, by position, and the size that their values are below.
    """

    text: str
    shapes: tuple[tuple[str | int, ...], ...]
    most: dict[str, int]
    indices: dict[int, str | int] = field(default_factory=dict)
    dtype: type = np.float32
    target: str | None = None

    def specs(self) -> list[tuple[int, ...]]:
        """Shapes with the sizes open."""
        return [tuple(e if isinstance(e, int) else tc.dynamic(self.most[e]) for e in shape) for shape in self.shapes]

    def calls(self) -> list[dict[str, int]]:
        """Sizes of calls: the greatest and the least ones, and some between them."""
        random = np.random.default_rng(len(self.text))
        drawn = [{name: int(random.integers(1, most + 1)) for name, most in self.most.items()} for _ in range(4)]
        one_less = {name: max(1, most - 1) for name, most in self.most.items()}
        return [dict(self.most), dict.fromkeys(self.most, 1), one_less, *drawn]

    def arrays(self, sizes: dict[str, int]) -> list[np.ndarray[Any, Any]]:
        random = np.random.default_rng(sum(sizes.values()))
        made: list[np.ndarray[Any, Any]] = []
        for position, shape in enumerate(self.shapes):
            extents = [sizes[e] if isinstance(e, str) else e for e in shape]
            below = self.indices.get(position)
            if below is None:
                made.append(random.standard_normal(extents, np.float32).astype(self.dtype))
            else:
                made.append(random.integers(0, sizes.get(str(below), 7), extents).astype(np.int32))
        return made


POSITIONS = {
    "mm": Opened(MM, (("M", "K"), ("K", "N")), {"M": 29, "K": 70, "N": 37}),
    "transposed mm": Opened(
        "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }",
        (("M", "K"), ("N", "K")),
        {"M": 21, "K": 66, "N": 40},
    ),
    "batched products": Opened(
        "def f(float(P,M,K) A, float(P,K,N) B) -> (C) { C(p,m,n) +=! A(p,m,k) * B(p,k,n) }",
        (("P", "M", "K"), ("P", "K", "N")),
        {"P": 3, "M": 13, "K": 17, "N": 19},
    ),
    "transposition": Opened("def f(float(M,N) A) -> (B) { B(n,m) = A(m,n) }", (("M", "N"),), {"M": 35, "N": 41}),
    "of four dimensions": Opened(
        "def f(float(A,B,C,D) x) -> (y) { y(d,b,a,c) = x(a,b,c,d) * 2 }",
        (("A", "B", "C", "D"),),
        {"A": 3, "B": 5, "C": 7, "D": 9},
    ),
    "convolution": Opened(
        "def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! I(n,c,h+kh,w+kw) * K(f,c,kh,kw) }",
        ((2, 3, "H", "W"), (4, 3, 1, 1)),
        {"H": 11, "W": 18},
    ),
    "convolution with a margin": Opened(
        "def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) {"
        " O(n,f,h,w) +=! (h+kh >= 1 && h+kh < H+1 && w+kw >= 1 && w+kw < W+1 ? I(n,c,h+kh-1,w+kw-1) : 0)"
        " * K(f,c,kh,kw) where h in 0:H, w in 0:W, n in 0:N, c in 0:C }",
        ((2, "C", "H", "W"), (4, "C", 3, 3)),
        {"C": 3, "H": 7, "W": 10},
    ),
    "softmax": Opened(
        """def f(float(N,D) I) -> (O, m, s) {
             m(n) max=! I(n,d)
             s(n) +=! exp(I(n,d) - m(n))
             O(n,d) = exp(I(n,d) - m(n)) / s(n)
           }""",
        (("N", "D"),),
        {"N": 5, "D": 150},
    ),
    "layer norm": Opened(
        """def f(float(N,D) x, float(D) g, float(D) b) -> (y) {
             mean(n) +=! x(n,d) / D
             v(n) +=! (x(n,d) - mean(n)) * (x(n,d) - mean(n)) / D
             y(n,d) = (x(n,d) - mean(n)) * rsqrt(v(n) + 1e-5) * g(d) + b(d)
           }""",
        (("N", "D"), ("D",), ("D",)),
        {"N": 6, "D": 70},
    ),
    "outer product": Opened("def f(float(N) a) -> (B) { B(i,j) = a(i) * a(j) }", (("N",),), {"N": 33}),
    "scan along rows": Opened(
        "def f(float(N,D) x) -> (y) { y(n,i) +=! x(n,j) where j in 0:i+1 }", (("N", "D"),), {"N": 5, "D": 40}
    ),
    "triangle inside": Opened(
        "def f(float(N,D) x, float(D) w) -> (y) { y(n,i) +=! x(n,j) * w(i-j) where i in 0:D, j in 0:i+1 }",
        (("N", "D"), ("D",)),
        {"N": 5, "D": 20},
    ),
    "concatenation of columns": Opened(
        "def f(float(K,N) A, float(K,M) B) -> (C) { C(k,i) = A(k,i)  C(k,N+j) = B(k,j) }",
        (("K", "N"), ("K", "M")),
        {"K": 6, "N": 9, "M": 11},
    ),
    "interleaved columns": Opened(
        "def f(float(K,N) A, float(K,N) B) -> (C) { C(k,2*i) = A(k,i)  C(k,2*i+1) = B(k,i) }",
        (("K", "N"), ("K", "N")),
        {"K": 6, "N": 13},
    ),
    "rolled columns": Opened(
        "def f(float(K,N) x, float(M) z) -> (y) { y(k,i) = x(k,(i+1)%N) + x(k,N-1-i) + z(0) where i in 0:N }",
        (("K", "N"), ("M",)),
        {"K": 6, "N": 13, "M": 2},
    ),
    "half of the columns": Opened(
        "def f(float(K,N) x) -> (y) { y(k,i) max=! x(k,2*i+j) where i in 0:N/2, j in 0:2 }",
        (("K", "N"),),
        {"K": 6, "N": 13},
    ),
    "groups of columns": Opened("def f(float(K,N) x) -> (y) { y(k,i/3) +=! x(k,i) }", (("K", "N"),), {"K": 6, "N": 13}),
    "temporaries": Opened(
        """def f(float(M,K) A, float(K,N) B, float(N,P) C) -> (D) {
             T(m,n) +=! A(m,k) * B(k,n)
             U(n,m) = fmax(T(m,n), 0)
             D(m,p) +=! U(n,m) * C(n,p)
           }""",
        (("M", "K"), ("K", "N"), ("N", "P")),
        {"M": 9, "K": 11, "N": 12, "P": 10},
    ),
    "embedding": Opened(
        "def f(float(E,D) T, int32(B,L) I) -> (O) { O(b,l,d) = T(I(b,l),d) }",
        (("E", "D"), ("B", "L")),
        {"E": 12, "D": 9, "B": 4, "L": 5},
        {1: "E"},
    ),
    "gathered columns": Opened(
        "def f(float(K,N) T, int32(L) I, int32(L) J) -> (O) { O(l) = T(J(l),I(l)) }",
        (("K", "N"), ("L",), ("L",)),
        {"K": 5, "N": 9, "L": 14},
        {1: "N", 2: "K"},
    ),
    "gathered products": Opened(
        "def f(float(E,D) T, int32(B) I, float(D,N) W) -> (O) { O(b,n) +=! T(I(b),d) * W(d,n) }",
        (("E", "D"), ("B",), ("D", "N")),
        {"E": 12, "D": 35, "B": 14, "N": 18},
        {1: "E"},
    ),
    "gradient of an embedding": Opened(
        "def f(int32(B) I, float(B,D) dO, float(V,D) E) -> (float(V,D) dE) { dE(I(b), d) +=! dO(b, d) }",
        (("B",), ("B", "D"), ("V", "D")),
        {"B": 25, "D": 9, "V": 8},
        {0: "V"},
    ),
    "histograms of rows": Opened(
        "def f(int32(R,N) x) -> (h) { h(r, x(r,i)) +=! 1 where x(r,i) in 0:7 }",
        (("R", "N"),),
        {"R": 5, "N": 30},
        {0: 7},
    ),
    "scattered along columns": Opened(
        "def f(float(R,V) x, int32(R,N) I, float(R,N) v) -> (y) { y(r,e) = x(r,e)  y(r,I(r,i)) max= v(r,i) }",
        (("R", "V"), ("R", "N"), ("R", "N")),
        {"R": 4, "V": 8, "N": 13},
        {1: "V"},
    ),
    "half products": Opened(
        "def f(half(M,K) A, half(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
        (("M", "K"), ("K", "N")),
        {"M": 9, "K": 24, "N": 17},
        dtype=np.float16,
    ),
    "ranges that data give": Opened(
        "def f(float(R,N) A, int32(R) B) -> (s) { s(r) +=! A(r,j) where j in 0:B(r) }",
        (("R", "N"), ("R",)),
        {"R": 6, "N": 103},
        {1: "N"},
    ),
    "subscripts with sizes": Opened(
        "def f(int32(K,K) A) -> (C) { t(l-k+K-1) max=! A(k,l)  C(l) +=! t(l) }", (("K", "K"),), {"K": 18}, {0: 99}
    ),
    "steps": Opened(
        "def f(float(T,N) x) -> (y) { y(0,n) = x(0,n)  for t in 1:T { y(t,n) = 0.5 * y(t-1,n) + x(t,n) } }",
        (("T", "N"),),
        {"T": 9, "N": 20},
    ),
    "the place of the greatest": Opened(
        "def f(float(N,D) x) -> (m, k) { (m(n), k(n)) max=! (x(n,d), d) }", (("N", "D"),), {"N": 7, "D": 30}
    ),
    "names of isl and C": Opened(
        "def f(float(min,c0) exists, float(c0,offset0) i0) -> (p0) { p0(n,k) +=! exists(n,c) * i0(c,k) }",
        (("min", "c0"), ("c0", "offset0")),
        {"min": 9, "c0": 11, "offset0": 13},
    ),
}
