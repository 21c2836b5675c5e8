"""Definitions for kernels that serve every value of a size, and what they compute at some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import tc
from tc.reference.compare import compare

MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"
FLOAT = tc.ScalarType.FLOAT32


@dataclass(frozen=True)
class Program:
    """A definition with a first size ``N`` that is open up to ``most``; other extents are numbers."""

    text: str
    shapes: tuple[tuple[object, ...], ...]
    most: int
    dtypes: tuple[type, ...] = ()

    def specs(self) -> list[tuple[int, ...]]:
        """Shapes with the size open."""
        return [tuple(tc.dynamic(self.most) if e == "N" else int(str(e)) for e in shape) for shape in self.shapes]

    def arrays(self, size: int) -> list[np.ndarray[Any, Any]]:
        random = np.random.default_rng(size)
        types = self.dtypes or (np.float32,) * len(self.shapes)
        made: list[np.ndarray[Any, Any]] = []
        for shape, type in zip(self.shapes, types, strict=True):
            extents = [size if e == "N" else int(str(e)) for e in shape]
            if np.issubdtype(type, np.integer):
                made.append(random.integers(0, 9, extents).astype(type))
            else:
                made.append(random.standard_normal(extents, np.float32).astype(type))
        return made


PROGRAMS = {
    "behind each other": Program(
        "def f(int32(N) A) -> (d) { b(i) = A(i)  b(j+N) = A(j)  d() +=! b(k) }", (("N",),), 18, (np.int32,)
    ),
    "mm": Program(MM, (("N", 48), (48, 33)), 100),
    "bands": Program(
        "def f(float(P,N,N) A, float(P,N,M) B) -> (C) {"
        " C(p,i,j) +=! A(p,i,k) * B(p,k,j) where i in 0:N, k in 0:N, k - i in 0:2 }",
        (("N", 17, 17), ("N", 17, 5)),
        9,
    ),
    "transposed mm": Program(
        "def f(float(N,K) A, float(M,K) B) -> (C) { C(n,m) +=! A(n,k) * B(m,k) }", (("N", 65), (130, 65)), 131
    ),
    "half mm": Program(
        "def f(half(N,K) A, half(K,M) B) -> (C) { C(n,m) +=! A(n,k) * B(k,m) }",
        (("N", 24), (24, 17)),
        40,
        (np.float16, np.float16),
    ),
    "bfloat16 mv": Program(
        "def f(bfloat16(N,K) A, bfloat16(K) x) -> (y) { y(n) +=! A(n,k) * x(k) }",
        (("N", 24), (24,)),
        40,
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    ),
    "elementwise": Program("def f(float(N) A, float(N) B) -> (C) { C(i) = A(i) * B(i) + 1 }", (("N",), ("N",)), 10000),
    "sum of everything": Program("def f(float(N,K) A) -> (s) { s() +=! A(n,k) }", (("N", 20),), 5000),
    "mean over the open size": Program("def f(float(N,K) A) -> (s) { s(k) +=! A(n,k) / N }", (("N", 20),), 500),
    "softmax": Program(
        """def f(float(N,D) I) -> (O, m, s) {
             m(n) max=! I(n,d)
             s(n) +=! exp(I(n,d) - m(n))
             O(n,d) = exp(I(n,d) - m(n)) / s(n)
           }""",
        (("N", 50),),
        70,
    ),
    "two layers": Program(
        """def f(float(N,C) I, float(O,C) V, float(P,O) W) -> (H, R) {
             H(n,o) +=! I(n,c) * V(o,c)
             H(n,o) = fmax(H(n,o), 0)
             R(n,p) +=! H(n,o) * W(p,o)
           }""",
        (("N", 30), (20, 30), (10, 20)),
        50,
    ),
    "convolution": Program(
        "def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! I(n,c,h+kh,w+kw) * K(f,c,kh,kw) }",
        (("N", 3, 9, 10), (4, 3, 3, 3)),
        12,
    ),
    "reversed rows": Program("def f(float(N,K) A) -> (B) { B(n,k) = A(N-1-n,k) }", (("N", 20),), 50),
    "longer by one": Program(
        "def f(float(N) A) -> (B) { B(n) = n < N ? A(min(n, N - 1)) : 0 where n in 0:N+1 }", (("N",),), 50
    ),
    "concatenation": Program(
        "def f(float(N,K) A, float(M,K) B) -> (C) { C(i,k) = A(i,k)\n C(N+j,k) = B(j,k) }", (("N", 20), (7, 20)), 50
    ),
    "gather by an open index": Program(
        "def f(float(E,K) T, int(N) I) -> (O) { O(n,k) = T(I(n),k) }", ((9, 20), ("N",)), 50, (np.float32, np.int32)
    ),
    "triangle": Program(
        "def f(float(N,K) A, float(N) B) -> (s) { s(i) +=! A(j,k) * B(j) where i in 0:N, j in 0:i+1 }",
        (("N", 8), ("N",)),
        50,
    ),
    "a temporary along the open size": Program(
        "def f(float(N,K) A) -> (S) { T(k,n) = A(n,k) * 2\n S(k) +=! T(k,n) }", (("N", 9),), 77
    ),
    "strided convolution": Program(
        "def f(float(N) x, float(K) w) -> (y) { y(i) +=! x(3*i + k) * w(k) }", (("N",), (2,)), 40
    ),
    "groups": Program(
        "def f(float(N,K) x) -> (y) { t(i/4,k) +=! x(i,k)  y(i+1,k) = t(i,k)  y(0,k) = 7 }", (("N", 5),), 30
    ),
    "names of isl and C": Program(
        "def f(float(min,c0) exists, float(c0) i0) -> (p0) { p0(n) +=! exists(n,c) * i0(c) }", (("N", 9), (9,)), 33
    ),
}


def sizes_up_to(most: int) -> list[int]:
    return sorted({1, 2, 7, most // 2 + 1, most - 1, most})


def agree(comprehension: tc.Comprehension, kernel: tc.Kernel, arrays: list[np.ndarray[Any, Any]]) -> None:
    expected = comprehension.oracle(*arrays)
    results = kernel(*arrays)
    for name, result in zip(expected, results if isinstance(results, tuple) else (results,), strict=True):
        assert isinstance(result, np.ndarray)
        assert result.shape == expected[name].values.shape
        assert (found := compare(expected[name], result)).ok, f"{name}: {found}"
