"""Copies, transpositions, concatenations and other rearrangements."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, normal
from tests.comprehensions.formulas import upsample_nearest

CASES = (
    Case(
        "copy",
        "layers.yaml, copy2D; tc/library/copy.h; test_core.cc, Copy2D",
        "def copy2D(float(M, N) I) -> (O) { O(i, j) = I(i, j) }",
        {"I": normal("M", "N")},
        lambda i: (i,),
        at("M N", 123, 13),
        (at("M N", 1, 1), at("M N", 7, 129), at("M N", 0, 5)),
    ),
    Case(
        "copy_1d",
        "test_core.cc, Copy1D; test_inference.cc, Copy1D; test_cuda_mapper.cc, Copy1D and ReadOnlyCache",
        "def fun(float(M) I) -> (O) { O(m) = I(m) }",
        {"I": normal("M")},
        lambda i: (i,),
        at("M", 123),
        (at("M", 0),),
    ),
    Case(
        "copy_3d",
        "tc/library/copy.h; test_core.cc, Copy3D and Copy",
        "def copy(float(P0,P1,P2) I) -> (O) { O(i0,i1,i2) = I(i0,i1,i2) }",
        {"I": normal("P0", "P1", "P2")},
        lambda i: (i,),
        at("P0 P1 P2", 123, 3, 2),
        (at("P0 P1 P2", 7, 1, 13),),
    ),
    Case(
        "copy_4d",
        "test_core.cc, Copy4D",
        "def fun(float(M, N, P, Q) I) -> (O) { O(m, n, p, q) = I(m, n, p, q) }",
        {"I": normal("M", "N", "P", "Q")},
        lambda i: (i,),
        at("M N P Q", 123, 3, 4, 5),
        (at("M N P Q", 1, 7, 3, 13),),
    ),
    Case(
        "copy_5d",
        "test_core.cc, Copy5D",
        "def fun(float(M, N, P, Q, R) I) -> (O) { O(m, n, p, q, r) = I(m, n, p, q, r) }",
        {"I": normal("M", "N", "P", "Q", "R")},
        lambda i: (i,),
        at("M N P Q R", 123, 10, 2, 3, 4),
        (at("M N P Q R", 2, 3, 1, 5, 7),),
        even_sizes=at("M N P Q R", 24, 40, 12, 4, 4),
    ),
    Case(
        "copy_of_copy",
        "test_core.cc, Copy1D2Stmt and Reduction1D2Stmt; test_cuda_mapper.cc, Copy2",
        """
        def fun(float(M) I) -> (O1, O2) {
            O1(m) = I(m)
            O2(m) = O1(m)
        }
        """,
        {"I": normal("M")},
        lambda i: (i, i),
        at("M", 123),
        (at("M", 129), at("M", 0)),
    ),
    Case(
        "copy_of_copy_of_copy",
        "test_core.cc, Copy2D2Stmt and Copy2D3Stmt",
        """
        def fun(float(M, N) I) -> (O1, O2, O3) {
            O1(m, n) =  I(m, n)
            O2(m, n) = O1(m, n)
            O3(m, n) = O2(m, n)
        }
        """,
        {"I": normal("M", "N")},
        lambda i: (i, i, i),
        at("M N", 123, 13),
        (at("M N", 7, 129),),
    ),
    Case(
        "unbalanced_copies",
        "test_cuda_mapper.cc, CopyUnbalanced",
        """
        def fun(float(N) I1, float(N, N) I2) -> (O1, O2) {
            O1(n)      = I1(n)
            O2(n0, n1) = I2(n0, n1)
        }
        """,
        {"I1": normal("N"), "I2": normal("N", "N")},
        lambda i1, i2: (i1, i2),
        at("N", 64),
        (at("N", 1), at("N", 13)),
    ),
    Case(
        "two_copies",
        "test_cuda_mapper.cc, ReschedulingMaxMinFuse",
        """
        def fun(float(N, M) A, float(N, M) B) -> (C,D) {
            C(n, m) = A(n, m)
            D(n, m) = B(n, m)
        }
        """,
        {"A": normal("N", "M"), "B": normal("N", "M")},
        lambda a, b: (a, b),
        at("N M", 64, 48),
        (at("N M", 7, 129),),
    ),
    Case(
        "copy_and_transpose",
        "test_cuda_mapper_memory_promotion.cc, MapperMemoryPromotionRAW",
        """
        def fun(float(N, M) A) -> (B, C) {
            B(n, m) = A(n, m)
            C(m, n) = B(n, m)
        }
        """,
        {"A": normal("N", "M")},
        lambda a: (a, a.T),
        at("N M", 42, 256),
        (at("N M", 1, 7), at("N M", 13, 129)),
    ),
    Case(
        "transpose",
        "paper, Section 2 (a(i,j) = b(j,i)); test_inference.cc, Transpose2D",
        "def fun(float(I_0, I_1) I) -> (O) { O(i, j) = I(j, i) }",
        {"I": normal("I_0", "I_1")},
        lambda i: (i.T,),
        at("I_0 I_1", 128, 64),
        (at("I_0 I_1", 1, 129), at("I_0 I_1", 13, 7)),
    ),
    Case(
        "transpose_4d",
        "layers.yaml, transpose; test_inference.cc, Transpose4D",
        "def transpose(float(N, C, H, W) I) -> (O) { O(c, n, w, h) = I(n, c, h, w) }",
        {"I": normal("N", "C", "H", "W")},
        lambda i: (i.transpose(1, 0, 3, 2),),
        at("N C H W", 8, 4, 28, 24),
        (at("N C H W", 1, 3, 7, 13),),
    ),
    Case(
        "strided_columns",
        "test_cuda_mapper_memory_promotion.cc, Stride2",
        "def strided(float(N,M) I) -> (O) { O(i, j) = I(j, 2 * i + 1) }",
        {"I": normal("N", "M")},
        lambda i: (i[:, 1::2].T,),
        at("N M", 42, 420),
        (at("N M", 7, 129), at("N M", 3, 1)),
        even_sizes=at("N M", 120, 240),
    ),
    Case(
        "strided_by_five",
        "test_cuda_mapper_memory_promotion.cc, Stride5",
        "def strided(float(N,M) I) -> (O) { O(i, j) = I(j, 5 * i) }",
        {"I": normal("N", "M")},
        lambda i: (i[:, ::5].T,),
        at("N M", 42, 420),
        (at("N M", 7, 129), at("N M", 3, 1)),
        even_sizes=at("N M", 120, 600),
    ),
    Case(
        "strided_by_123",
        "test_inference.cc, Scale1D",
        "def fun(float(I_0) I) -> (O) { O(i) = I(123 * i) }",
        {"I": normal("I_0")},
        lambda i: (i[::123],),
        at("I_0", 1000),
        (at("I_0", 123), at("I_0", 124), at("I_0", 1), at("I_0", 0)),
        even_sizes=at("I_0", 2952),
    ),
    Case(
        "every_second",
        "docs/source/inference.rst, subsample_2",
        "def subsample_2(float(I) B) -> (A) { A(i) = B(2*i) }",
        {"B": normal("I")},
        lambda b: (b[::2],),
        at("I", 64),
        (at("I", 1), at("I", 129)),
        even_sizes=at("I", 240),
    ),
    Case(
        "shift_to_the_left",
        "test_inference.cc, Shift1D2 (iteration variables start at 0 here)",
        "def fun(float(I_0) I) -> (O) { O(i) = I(i + 5) }",
        {"I": normal("I_0")},
        lambda i: (i[5:],),
        at("I_0", 64),
        (at("I_0", 5), at("I_0", 129)),
        even_sizes=at("I_0", 125),
    ),
    Case(
        "shift_to_the_right",
        "test_inference.cc, Shift1D: the shift with a guard",
        "def fun(float(N) x) -> (y) { y(i) = i >= 1 ? x(i-1) : 0 }",
        {"x": normal("N")},
        lambda x: (np.concatenate([[0], x]),),
        at("N", 64),
        (at("N", 1), at("N", 129), at("N", 0)),
        even_sizes=at("N", 119),
    ),
    Case(
        "differences",
        "docs/source/inference.rst, first stencil, its range written out",
        "def f(float(N) B, float(N) C) -> (A) { A(i) = B(i) + (i >= 2 ? C(i-2) : 0.0) }",
        {"B": normal("N"), "C": normal("N")},
        lambda b, c: (b + np.pad(c, (2, 0))[: len(b)],),
        at("N", 64),
        (at("N", 1), at("N", 2), at("N", 129)),
    ),
    Case(
        "reversed",
        "docs/source/inference.rst, inverted indexing, for any size",
        "def reverted(float(I) B) -> (A) { A(i) = B(I - 1 - i) where i in 0:I }",
        {"B": normal("I")},
        lambda b: (b[::-1],),
        at("I", 64),
        (at("I", 1), at("I", 129), at("I", 0)),
    ),
    Case(
        "concat",
        "layers.yaml, concat; test_mapper_llvm.cc, Concat",
        """
        def concat(float(M, N) A, float(M, N) B) -> (O1) {
          O1(n, i, m) = i == 0 ? A(m, n) : B(m, n) where i in 0:2
        }
        """,
        {"A": normal("M", "N"), "B": normal("M", "N")},
        lambda a, b: (np.stack([a.T, b.T], axis=1),),
        at("M N", 32, 16),
        (at("M N", 1, 1), at("M N", 7, 129)),
    ),
    Case(
        "concat_by_statements",
        "test/cuda/test_execution_engine.cc, Concat2",
        """
        def concat(float(M, N) A, float(M, N) B) -> (O1) {
            O1(n, 0, m) = A(m, n)
            O1(n, 1, m) = B(m, n)
        }
        """,
        {"A": normal("M", "N"), "B": normal("M", "N")},
        lambda a, b: (np.stack([a.T, b.T], axis=1),),
        at("M N", 32, 16),
        (at("M N", 1, 1), at("M N", 7, 129)),
    ),
    Case(
        "concat_of_columns",
        "affine left-hand sides: concatenation",
        """
        def concat(float(B, C1) X, float(B, C2) Y) -> (O) {
            O(b, c) = X(b, c)
            O(b, c + C1) = Y(b, c)
        }
        """,
        {"X": normal("B", "C1"), "Y": normal("B", "C2")},
        lambda x, y: (np.concatenate([x, y], axis=1),),
        at("B C1 C2", 64, 32, 16),
        (at("B C1 C2", 1, 1, 1), at("B C1 C2", 7, 13, 129), at("B C1 C2", 3, 0, 5), at("B C1 C2", 3, 5, 0)),
    ),
    Case(
        "interleave",
        "affine left-hand sides: interleaving",
        """
        def interleave(float(N) x, float(N) y) -> (z) {
            z(2 * i) = x(i)
            z(2 * i + 1) = y(i)
        }
        """,
        {"x": normal("N"), "y": normal("N")},
        lambda x, y: (np.column_stack([x, y]).ravel(),),
        at("N", 64),
        (at("N", 1), at("N", 129), at("N", 0)),
    ),
    Case(
        "upsample_by_division",
        "upsampling: subscripts with a division",
        "def upsample(float(N,C,H,W) X) -> (Y) { Y(n,c,i,j) = X(n,c,i/2,j/2) where i in 0:2*H, j in 0:2*W }",
        {"X": normal("N", "C", "H", "W")},
        lambda x: (upsample_nearest(x, 2),),
        at("N C H W", 2, 4, 14, 14),
        (at("N C H W", 1, 1, 1, 1), at("N C H W", 2, 3, 5, 7)),
        even_sizes=at("N C H W", 24, 40, 12, 4),
    ),
    Case(
        "upsample_by_statements",
        "affine left-hand sides: upsampling",
        """
        def upsample(float(H,W) X) -> (Y) {
            Y(2 * i, 2 * j) = X(i,j)
            Y(2 * i + 1, 2 * j) = X(i,j)
            Y(2 * i, 2 * j + 1) = X(i,j)
            Y(2 * i + 1, 2 * j + 1) = X(i,j)
        }
        """,
        {"X": normal("H", "W")},
        lambda x: (x.repeat(2, axis=0).repeat(2, axis=1),),
        at("H W", 28, 28),
        (at("H W", 1, 1), at("H W", 7, 13)),
    ),
    Case(
        "periodic",
        "test_cuda_mapper.cc, ModulusConstantRHS",
        "def fun(float(N) a) -> (b) { b(i) = a(i % 3) where i in 0:N }",
        {"a": normal("N")},
        lambda a: (np.resize(a[:3], len(a)),),
        at("N", 64),
        (at("N", 3), at("N", 129)),
    ),
    Case(
        "diagonal",
        "an access with one index twice",
        "def diagonal(float(N,N) A) -> (d) { d(i) = A(i,i) }",
        {"A": normal("N", "N")},
        lambda a: (np.diagonal(a),),
        at("N", 64),
        (at("N", 1), at("N", 13)),
    ),
    Case(
        "space_to_depth",
        "paper, Section 3.2: data tiling by index expressions",
        "def tiled(float(H,W) X) -> (Y) { Y(i,j,k,l) = X(4*i+k, 4*j+l) where k in 0:4, l in 0:4 }",
        {"X": normal("H", "W")},
        lambda x: (
            x[: x.shape[0] // 4 * 4, : x.shape[1] // 4 * 4]
            .reshape(x.shape[0] // 4, 4, x.shape[1] // 4, 4)
            .transpose(0, 2, 1, 3),
        ),
        at("H W", 64, 48),
        (at("H W", 4, 4), at("H W", 13, 31), at("H W", 3, 8)),
        even_sizes=at("H W", 480, 480),
    ),
)
