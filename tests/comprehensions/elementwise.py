"""Functions, casts and arithmetic, element by element."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, integers, normal, scalar, uniform

_PLANES = (at("N C H W", 1, 1, 1, 1), at("N C H W", 2, 3, 7, 13), at("N C H W", 0, 3, 7, 13))
_MATRICES = (at("M N", 1, 1), at("M N", 7, 129), at("M N", 0, 5))
_ADD_AND_SUBTRACT = """
def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }
def sub(float(N) A, float(N) B) -> (C) { C(i) = A(i) - B(i) }
"""


CASES = (
    Case(
        "add",
        "layers.yaml, add; python/tests/test_tc.py",
        _ADD_AND_SUBTRACT,
        {"A": normal("N"), "B": normal("N")},
        lambda a, b: (a + b,),
        at("N", 100000),
        (at("N", 1), at("N", 129), at("N", 0)),
        definition="add",
    ),
    Case(
        "subtract",
        "python/tests/test_tc.py, test_define",
        _ADD_AND_SUBTRACT,
        {"A": normal("N"), "B": normal("N")},
        lambda a, b: (a - b,),
        at("N", 100),
        (at("N", 7),),
        definition="sub",
    ),
    Case(
        "add_matrices",
        "test_mapper_llvm.cc, Basic; test_cuda_mapper.cc, Basic and kTcAdd",
        "def fun(float(N, M) A, float(N, M) B) -> (C) { C(n, m) = A(n, m) + B(n, m) }",
        {"A": normal("N", "M"), "B": normal("N", "M")},
        lambda a, b: (a + b,),
        at("N M", 40, 24),
        (at("N M", 1, 129), at("N M", 13, 7)),
    ),
    Case(
        "add_in_four_dimensions",
        "test_cuda_mapper_memory_promotion.cc, Sum4D",
        "def fun(float(N,M,K,L) A, float(N,M,K,L) B) -> (C) { C(n,m,k,l) = A(n,m,k,l) + B(n,m,k,l) }",
        {"A": normal("N", "M", "K", "L"), "B": normal("N", "M", "K", "L")},
        lambda a, b: (a + b,),
        at("N M K L", 32, 16, 24, 28),
        (at("N M K L", 3, 7, 1, 13),),
        note="cut from 256, 128, 192 and 224 to 1/8",
    ),
    Case(
        "sigmoid",
        "layers.yaml, sigmoid",
        "def sigmoid(float(N, C, H, W) I) -> (O) { O(n, c, h, w) = 1 / (1 + exp(-I(n, c, h, w))) }",
        {"I": normal("N", "C", "H", "W")},
        lambda i: (0.5 * (1 + np.tanh(0.5 * i)),),
        at("N C H W", 8, 4, 28, 28),
        _PLANES,
    ),
    Case(
        "tanh",
        "layers.yaml, Tanh",
        "def Tanh(float(M) I) -> (O) { O(m) = tanh(I(m)) }",
        {"I": normal("M")},
        lambda i: (np.tanh(i),),
        at("M", 1000),
        (at("M", 1), at("M", 129)),
    ),
    Case(
        "relu",
        "layers.yaml, relu; writing_layers.rst",
        "def relu(float(B, M) I) -> (O1){ O1(b, m) = fmax(I(b, m), 0) }",
        {"I": normal("B", "M")},
        lambda i: (np.where(i > 0, i, 0),),
        at("B M", 100, 128),
        (at("B M", 7, 129), at("B M", 0, 5)),
    ),
    Case(
        "absolute",
        "layers.yaml, abs; writing_layers.rst (two definitions in one text)",
        """
        def matmul(float(M, K) A, float(K, N) B) -> (C) {
            C(m, n) +=! A(m, r_k) * B(r_k, n)
        }
        def abs(float(M, N) A) -> (O1) {
            O1(m, n) = fabs(A(m, n))
        }
        """,
        {"A": normal("M", "N")},
        lambda a: (np.abs(a),),
        at("M N", 100, 400),
        _MATRICES,
        definition="abs",
    ),
    Case(
        "cosine",
        "layers.yaml, cosine",
        "def cosine(float(M) I) -> (O) { O(i) = cos(I(i)) }",
        {"I": normal("M")},
        lambda i: (np.cos(i),),
        at("M", 1000),
        (at("M", 7), at("M", 0)),
    ),
    Case(
        "scale",
        "layers.yaml, scale",
        "def scale(float(M, N) I) -> (O) { O(m, n) = I(m, n) * 10 }",
        {"I": normal("M", "N")},
        lambda i: (10 * i,),
        at("M N", 100, 128),
        _MATRICES,
    ),
    Case(
        "scale_by_argument",
        "layers.yaml, scale, with the factor as an argument",
        "def scale(float s, float(M, N) I) -> (O) { O(m, n) = I(m, n) * s }",
        {"s": scalar(0.375), "I": normal("M", "N")},
        lambda s, i: (s * i,),
        at("M N", 100, 128),
        _MATRICES,
    ),
    Case(
        "cast",
        "layers.yaml, cast, with constant 4",
        "def cast(float(M, N) A) -> (O1) { O1(m, n) = int32(A(m, n) + 4) }",
        {"A": uniform(-100, 100, "M", "N")},
        lambda a: (np.trunc(a + 4).astype(np.int32),),
        at("M N", 100, 128),
        _MATRICES[:2],
    ),
    Case(
        "cast_with_argument",
        "test_compile_and_run.cc, Casts",
        "def cast(float(M,N) A, int32 four) -> (output) { output(m,n) = int32(A(m,n) + four) }",
        {"A": uniform(1, 2, "M", "N"), "four": lambda rng, sizes: 4},
        lambda a, four: (np.trunc(a + four).astype(np.int32),),
        at("M N", 2, 4),
        (at("M N", 7, 129),),
    ),
    Case(
        "sizes_and_indices_as_values",
        "test_cuda_mapper.cc, BareVariables",
        "def fun(float(N, N) A) -> (O) { O(n0, n1) = A(n0, n1) + n0 + n1 + N }",
        {"A": normal("N", "N")},
        lambda a: (a + np.add.outer(np.arange(len(a)), np.arange(len(a))) + len(a),),
        at("N", 64),
        (at("N", 1), at("N", 13)),
    ),
    Case(
        "functions",
        "test_cuda_mapper.cc, CudaFunctions",
        """
        def fun(float(N, N) A, float(N, N) B, float(N) C) -> (O)
        {
            O(n0, n1) = nextafter(C(n0), exp(A(n0, n1))) + log(B(n1, n0))
        }
        """,
        {"A": normal("N", "N"), "B": uniform(0.5, 2, "N", "N"), "C": normal("N")},
        lambda a, b, c: (np.nextafter(c[:, None].astype(np.float32), np.float32(np.exp(a))) + np.log(b.T),),
        at("N", 64),
        (at("N", 1), at("N", 13)),
    ),
    Case(
        "function_of_functions",
        "test_lang.cc, builtins.expected",
        "def fun(float(M) I) -> (O) { O +=! log(tanh(I(i))) }",
        {"I": uniform(0.25, 2, "M")},
        lambda i: (np.log(np.tanh(i)).sum(),),
        at("M", 1000),
        (at("M", 1), at("M", 129)),
        terms=("M",),
    ),
    Case(
        "indirect_sum",
        "test_lang.cc, indirect.expected",
        "def fun(float(M) A, float(N) B) -> (O) { O +=! A(int32(B(i))) }",
        {"A": normal("M"), "B": uniform(0, 7, "N")},
        lambda a, b: (np.bincount(b.astype(np.int64), minlength=len(a)) @ a,),
        at("M N", 7, 100),
        (at("M N", 13, 129), at("M N", 7, 1)),
        terms=("N",),
    ),
    Case(
        "integer_arithmetic",
        "division and remainder truncate as in C, and by zero give zero",
        "def f(int(N) a, int(N) b) -> (q, r) { q(i) = a(i) / b(i) r(i) = a(i) % b(i) }",
        {"a": integers(-50, 50, "N"), "b": integers(-5, 6, "N")},
        lambda a, b: (
            np.where(b == 0, 0, np.trunc(a / np.where(b == 0, 1, b))),
            np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b))),
        ),
        at("N", 1000),
        (at("N", 7),),
    ),
)
