"""Products of vectors and matrices."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, fixed, normal, scalar, uniform

_MATRIX_PRODUCT = (
    at("M K N", 1, 1, 1),
    at("M K N", 7, 129, 13),
    at("M K N", 5, 0, 3),
    at("M K N", 0, 7, 129),
)
_MATMUL_WITH_GRADIENTS = """
def matmul(float(M,N) A, float(N,K) B) -> (C) {
    C(m, k) +=! A(m, r_n) * B(r_n, k)
}
def matmul_agrad(float(N,K) B, float(M,K) d_C) -> (d_A) {
    d_A(m, n) +=! d_C(  m, r_k) * B(  n, r_k)
}
def matmul_bgrad(float(M,N) A, float(M,K) d_C) -> (d_B) {
    d_B(n, k) +=! d_C(r_m,   k) * A(r_m,   n)
}
"""


CASES = (
    Case(
        "mv_two_statements",
        "paper, Section 2, first example",
        """
        def mv(float(M,K) A, float(K) x) -> (C) {
            C(i) = 0
            C(i) += A(i,k) * x(k)
        }
        """,
        {"A": normal("M", "K"), "x": normal("K")},
        lambda a, x: (a @ x,),
        at("M K", 128, 256),
        (at("M K", 1, 1), at("M K", 7, 129), at("M K", 129, 0)),
        terms=("K",),
    ),
    Case(
        "mv",
        "paper, Section 2, with an initializing reduction",
        """
        def mv(float(M,K) A, float(K) x) -> (C) {
            C(i) +=! A(i,k) * x(k)
        }
        """,
        {"A": normal("M", "K"), "x": normal("K")},
        lambda a, x: (a @ x,),
        at("M K", 128, 256),
        (at("M K", 1, 1), at("M K", 129, 7), at("M K", 0, 5)),
        terms=("K",),
    ),
    Case(
        "mv_accumulate",
        "docs/source/introduction.rst, simple matrix-vector",
        "def mv(float(R,C) A, float(C) x) -> (o) { o(i) += A(i,j) * x(j) }",
        {"A": normal("R", "C"), "x": normal("C")},
        lambda a, x, o: (o + a @ x,),
        at("R C", 128, 256),
        (at("R C", 1, 1), at("R C", 129, 7), at("R C", 3, 0)),
        in_out={"o": normal("R")},
        terms=("C",),
    ),
    Case(
        "sgemm",
        "paper, Figure 1",
        """
        def sgemm(float a, float b,
                  float(N,M) A, float(M,K) B) -> (C) {
            C(i,j) = b * C(i,j)             # initialization
            C(i,j) += a * A(i,k) * B(k,j)   # accumulation
        }
        """,
        {"a": scalar(1.5), "b": scalar(-0.25), "A": normal("N", "M"), "B": normal("M", "K")},
        lambda alpha, beta, a, b, c: (beta * c + alpha * (a @ b),),
        at("N M K", 128, 128, 128),
        (at("N M K", 1, 1, 1), at("N M K", 13, 7, 129), at("N M K", 3, 0, 5)),
        in_out={"C": normal("N", "K")},
        terms=("M",),
    ),
    Case(
        "mm",
        "paper, Figure 11; docs (getting_started, writing_layers, inference.rst), test_python, test_cuda_mapper kTcMM",
        """
        def mm(float(M,K) A,
               float(K,N) B) -> (C) {
            C(m,n) +=! A(m,kk) * B(kk,n)
        }
        """,
        {"A": normal("M", "K"), "B": normal("K", "N")},
        lambda a, b: (a @ b,),
        at("M K N", 72, 26, 72),
        _MATRIX_PRODUCT,
        terms=("K",),
    ),
    Case(
        "mm_accumulate",
        "docs/source/introduction.rst, simple matrix-multiply; test_compile_and_run.cc, MatMulInplace",
        "def mm(float(X,Y) A, float(Y,Z) B) -> (R) { R(i,j) += A(i,k) * B(k,j) }",
        {"A": normal("X", "Y"), "B": normal("Y", "Z")},
        lambda a, b, r: (r + a @ b,),
        at("X Y Z", 3, 4, 5),
        (at("X Y Z", 1, 1, 1), at("X Y Z", 7, 129, 13), at("X Y Z", 5, 0, 7)),
        in_out={"R": normal("X", "Z")},
        terms=("Y",),
    ),
    Case(
        "matmul_harness",
        "test_tc_mapper_harness-inl.h, sizes of TcMapperTest",
        "def matmul(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, r_k) * B(r_k, n) }",
        {"A": normal("M", "K"), "B": normal("K", "N")},
        lambda a, b: (a @ b,),
        at("M N K", 165, 197, 227),
        (at("M N K", 1, 129, 7),),
        terms=("K",),
    ),
    Case(
        "tmm",
        "paper, Section 7 (transposed matrix multiplication); docs/source/.../autotuning_layers.rst",
        """
        def tmm(float(M,K) A, float(N,K) B) -> (C) {
            C(m,n) +=! A(m,kk) * B(n,kk)
        }
        """,
        {"A": normal("M", "K"), "B": normal("N", "K")},
        lambda a, b: (a @ b.T,),
        at("M N K", 128, 1024, 1024),
        _MATRIX_PRODUCT,
        terms=("K",),
    ),
    Case(
        "tbmm",
        "paper, Section 7 (transposed batched matrix multiplication)",
        """
        def tbmm(float(B,N,M) X, float(B,K,M) Y) -> (Z) {
            Z(b,n,k) +=! X(b,n,m) * Y(b,k,m)
        }
        """,
        {"X": normal("B", "N", "M"), "Y": normal("B", "K", "M")},
        lambda x, y: (x @ y.transpose(0, 2, 1),),
        at("B N M K", 500, 26, 72, 26),
        (at("B N M K", 1, 1, 1, 1), at("B N M K", 3, 7, 129, 5), at("B N M K", 0, 2, 3, 4)),
        terms=("M",),
    ),
    Case(
        "batch_matmul",
        "tensor_comprehensions/library/layers.yaml; test_mapper_llvm.cc, BatchMatMul",
        "def batch_matmul(float(B, N, M) X, float(B, M, K) Y) -> (Z) { Z(b, n, k) +=! X(b, n, mm) * Y(b, mm, k) }",
        {"X": normal("B", "N", "M"), "Y": normal("B", "M", "K")},
        lambda x, y: (x @ y,),
        at("B N M K", 15, 40, 24, 21),
        (at("B N M K", 1, 7, 1, 129), at("B N M K", 2, 3, 0, 5)),
        terms=("M",),
    ),
    Case(
        "batch_matmul_accumulate",
        "test_lang.cc, canonical forms",
        "def fun(float(B, N, M) X, float(B, M, K) Y) -> (Z) { Z(b, i, j) += X(b, i, k) * Y(b, k, j) }",
        {"X": normal("B", "N", "M"), "Y": normal("B", "M", "K")},
        lambda x, y, z: (z + x @ y,),
        at("B N M K", 4, 8, 16, 8),
        (at("B N M K", 3, 7, 11, 5),),
        in_out={"Z": normal("B", "N", "K")},
        terms=("M",),
    ),
    Case(
        "batch_matmul_of_functions",
        "test_lang.cc, testTcFormat",
        """
        def fun2(float(B, N, M) X, float(B, M, K) Y) -> (Q) {
          Q(b, ii, j) += (((exp(X(b, ii, k)) * int(Y(b, k, j))) * 2.5) + 3)
        }
        """,
        {"X": uniform(-1, 1, "B", "N", "M"), "Y": uniform(-4, 4, "B", "M", "K")},
        lambda x, y, q: (q + 2.5 * (np.exp(x) @ np.trunc(y)) + 3 * x.shape[2],),
        at("B N M K", 4, 8, 16, 8),
        (at("B N M K", 3, 7, 11, 5), at("B N M K", 2, 3, 0, 5)),
        in_out={"Q": normal("B", "N", "K", dtype="float64")},
        terms=("M",),
    ),
    Case(
        "two_matmuls",
        "test_core.cc, TwoMatmul",
        """
        def fun(float(M, K) I, float(K, N) W1, float(N, P) W2) -> (O1, O2) {
            O1(m, n) +=!  I(m, r_k) * W1(r_k, n)
            O2(m, p) +=! O1(m, r_n) * W2(r_n, p)
        }
        """,
        {"I": normal("M", "K"), "W1": normal("K", "N"), "W2": normal("N", "P")},
        lambda i, w1, w2: (i @ w1, np.linalg.multi_dot([i, w1, w2])),
        at("M K N P", 32, 24, 40, 16),
        (at("M K N P", 1, 1, 1, 1), at("M K N P", 7, 13, 129, 5)),
        terms=("N", "K"),
    ),
    Case(
        "two_products_of_one_matrix",
        "test_cuda_mapper.cc, Rescheduling2MM",
        """
        def fun(float(M, K) A, float(K, N) B, float(K, N) C) -> (D, E) {
            D(m, n) +=! A(m, r_k) * B(r_k, n)
            E(m, n) +=! A(m, r_k) * C(r_k, n)
        }
        """,
        {"A": normal("M", "K"), "B": normal("K", "N"), "C": normal("K", "N")},
        lambda a, b, c: (a @ b, a @ c),
        at("M K N", 64, 32, 48),
        (at("M K N", 7, 129, 13), at("M K N", 3, 0, 5)),
        terms=("K",),
    ),
    Case(
        "matmul_with_bias",
        "test_cuda_mapper_memory_promotion.cc, MatMulBias",
        """
        def fun(float(N,K) A, float(K,M) B, float(N,M) C) -> (O) {
          O(i,j) +=! A(i,k) * B(k,j)
          O(i,j) = O(i,j) + C(i,j)
        }
        """,
        {"A": normal("N", "K"), "B": normal("K", "M"), "C": normal("N", "M")},
        lambda a, b, c: (a @ b + c,),
        at("N M K", 42, 56, 37),
        (at("N M K", 1, 7, 129), at("N M K", 2, 3, 0)),
        terms=("K",),
    ),
    Case(
        "matmul_doubled",
        "test_autodiff.cc",
        """
        def mm(double(M, K) A, double(K, N) B) -> (O, W) {
          O(i, j) +=! A(i, k) * B(k, j)
          W(i, j) = O(i, j) * 2
        }
        """,
        {"A": normal("M", "K", dtype="float64"), "B": normal("K", "N", dtype="float64")},
        lambda a, b: (a @ b, 2 * (a @ b)),
        at("M K N", 32, 32, 32),
        (at("M K N", 7, 129, 13),),
        terms=("K",),
    ),
    Case(
        "matmul_gradient",
        "tensor_comprehensions/library/layers.yaml, matmul (the name that B lacks there added)",
        """
        def matmul_grad(float(M,N) A, float(N,K) B, float(M,K) O_grad) -> (A_grad, B_grad) {
          A_grad(i, j) +=! O_grad(i, kk) * B(j, kk)
          B_grad(i, j) +=! O_grad(kk, j) * A(kk, i)
        }
        """,
        {"A": normal("M", "N"), "B": normal("N", "K"), "O_grad": normal("M", "K")},
        lambda a, b, g: (g @ b.T, a.T @ g),
        at("M N K", 30, 40, 50),
        (at("M N K", 7, 129, 13), at("M N K", 0, 3, 5)),
        terms=("M", "K"),
    ),
    Case(
        "matmul_agrad",
        "python/benchmarks/python_overhead.py",
        _MATMUL_WITH_GRADIENTS,
        {"B": normal("N", "K"), "d_C": normal("M", "K")},
        lambda b, g: (g @ b.T,),
        at("M N K", 30, 40, 50),
        (at("M N K", 7, 129, 13),),
        definition="matmul_agrad",
        terms=("K",),
    ),
    Case(
        "matmul_bgrad",
        "python/benchmarks/python_overhead.py",
        _MATMUL_WITH_GRADIENTS,
        {"A": normal("M", "N"), "d_C": normal("M", "K")},
        lambda a, g: (a.T @ g,),
        at("M N K", 30, 40, 50),
        (at("M N K", 7, 129, 13),),
        definition="matmul_bgrad",
        terms=("M",),
    ),
    Case(
        "triangular_product",
        "triangular domain: the product with a lower triangle (trmm)",
        "def trmm(float(N,N) L, float(N,M) B) -> (C) { C(i,j) +=! L(i,k) * B(k,j) where k in 0:i+1 }",
        {"L": normal("N", "N"), "B": normal("N", "M")},
        lambda a, b: (np.tril(a) @ b,),
        at("N M", 64, 48),
        (at("N M", 1, 1), at("N M", 13, 7), at("N M", 0, 5)),
        terms=("N",),
    ),
    Case(
        "symmetric_rank_k",
        "triangular domain: the lower triangle of a product with the transpose (syrk)",
        """
        def syrk(float(N,K) A) -> (C) {
            C(i,j) = 0.0 where i in 0:N, j in 0:N
            C(i,j) += A(i,k) * A(j,k) where i in 0:N, j in 0:i+1
        }
        """,
        {"A": normal("N", "K")},
        lambda a: (np.tril(a @ a.T),),
        at("N K", 64, 48),
        (at("N K", 1, 1), at("N K", 13, 7), at("N K", 0, 5)),
        terms=("K",),
    ),
    Case(
        "fourier_transform",
        "a discrete Fourier transform as two dense layers",
        """
        def dft(double(N) re, double(N) im) -> (X, Y) {
            C(k,n) = cospi(2 * ((k * n) % N) / float64(N)) where k in 0:N, n in 0:N
            S(k,n) = sinpi(2 * ((k * n) % N) / float64(N)) where k in 0:N, n in 0:N
            X(k) +=! re(n) * C(k,n) + im(n) * S(k,n)
            Y(k) +=! im(n) * C(k,n) - re(n) * S(k,n)
        }
        """,
        {"re": normal("N", dtype="float64"), "im": normal("N", dtype="float64")},
        lambda re, im: (np.fft.fft(re + 1j * im).real, np.fft.fft(re + 1j * im).imag),
        at("N", 128),
        (at("N", 1), at("N", 7), at("N", 129)),
        terms=("N", "N"),
    ),
    Case(
        "dot",
        "test_lang.cc, scalar results; the dot product",
        "def dot(float(N) a, float(N) b) -> (c) { c +=! a(i) * b(i) }",
        {"a": normal("N"), "b": normal("N")},
        lambda a, b: (np.dot(a, b),),
        at("N", 4096),
        (at("N", 1), at("N", 129), at("N", 0)),
        terms=("N",),
    ),
    Case(
        "quadratic_form",
        "reductions over several indices at once",
        "def quadratic(float(N) x, float(N,M) A, float(M) y) -> (q) { q() +=! x(i) * A(i,j) * y(j) }",
        {"x": normal("N"), "A": normal("N", "M"), "y": normal("M")},
        lambda x, a, y: (x @ a @ y,),
        at("N M", 64, 64),
        (at("N M", 1, 129), at("N M", 7, 13), at("N M", 0, 3)),
        terms=("N", "M"),
    ),
    Case(
        "constant_weights",
        "a product with sizes written as numbers",
        "def f(float(3,4) A, float(4) x) -> (y) { y(i) +=! A(i,j) * x(j) }",
        {"A": fixed([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], "float32"), "x": normal(4)},
        lambda a, x: (a.dot(x),),
        {},
        (),
    ),
)
