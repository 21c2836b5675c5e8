"""Sums of vectors, rows and planes, in every type; moments."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tests.comprehensions.case import Case, at, fixed, indices, integers, normal, uniform

_MOMENTS = """
def sum_2D_1D(float(N, K) I) -> (sum)
{
    sum(n) +=! I(n, r_k)
}
def mean_2D_1D(float(N, K) I) -> (mean)
{
    mean(n) +=! I(n, r_k)
    mean(n)  = mean(n) / (K)
}
def sum_squares_2D_1D(float(N, K) I) -> (sum_squares)
{
     sum_squares(n) +=! I(n, r_k) * I(n, r_k)
}
def var_2D_1D(float(N, K) I, float(N) mean) -> (var)
{
     var(n) +=! I(n, r_k) * I(n, r_k)
     var(n)  =  var(n) / (K) - mean(n) * mean(n)
}
def sum_and_squares_2D_1D(float(N, K) I) -> (sum, sum_squares)
{
             sum(n) +=! I(n, r_k)
     sum_squares(n) +=! I(n, r_k) * I(n, r_k)
}
def moments2_2D_1D(float(N, K) I) -> (mean, var)
{
# var = E(x^2) - mean^2.
    mean(n) +=! I(n, r_k)
     var(n) +=! I(n, r_k) * I(n, r_k)
    mean(n)  = mean(n) / (K)
     var(n)  =  var(n) / (K) - mean(n) * mean(n)
}
"""
_MOMENTS_SOURCE = "tc/benchmarks/moments.h"
_MOMENTS_SIZES = (at("N K", 1, 1), at("N K", 7, 129), at("N K", 0, 3))


CASES = (
    Case(
        "sum_of_vector",
        "test_lang.cc, scalar.expected; test_cuda_mapper.cc, Reduction1D; test_tc_mapper_harness-inl.h, version 2",
        "def sum1D(float(M) A) -> (C) { C +=! A(r_m) }",
        {"A": normal("M")},
        lambda a: (a.sum(),),
        at("M", 165),
        (at("M", 1), at("M", 129), at("M", 0)),
        terms=("M",),
    ),
    Case(
        "sum_of_vector_in_parentheses",
        "test_tc_mapper_harness-inl.h, TcMapper1DReductionTest version 1",
        "def sum1D(float(M) A) -> (C) { C() +=! A(r_m) }",
        {"A": normal("M")},
        lambda a: (a.sum(),),
        at("M", 165),
        (at("M", 7),),
        terms=("M",),
    ),
    Case(
        "sum_of_vector_at_zero",
        "test_tc_mapper_harness-inl.h, TcMapper1DReductionTest version 0; test_core.cc, Reduction1D",
        "def sum1D(float(M) A) -> (C) { C(0) +=! A(r_m) where i in 0:1 }",
        {"A": normal("M")},
        lambda a: (a.sum(keepdims=True),),
        at("M", 165),
        (at("M", 7),),
        terms=("M",),
    ),
    Case(
        "sum_of_vector_at_one_index",
        "test_tc_mapper_harness-inl.h, TcMapper1DReductionTest version 3",
        "def sum1D(float(M) A) -> (C) { C(i) +=! A(r_m) where i in 0:1 }",
        {"A": normal("M")},
        lambda a: (a.sum(keepdims=True),),
        at("M", 165),
        (at("M", 7), at("M", 0)),
        terms=("M",),
    ),
    Case(
        "sum_of_rows",
        "test_tc_mapper_harness-inl.h, TcMapper2DReductionTest; test_core.cc, Reduction2D",
        "def sum2D(float(M, N) A) -> (C) { C(m) +=! A(m, r_n) }",
        {"A": normal("M", "N")},
        lambda a: (a.sum(axis=1),),
        at("M N", 165, 197),
        (at("M N", 130, 11), at("M N", 1, 7), at("M N", 7, 0)),
        terms=("N",),
    ),
    Case(
        "sum_of_planes",
        "test_core.cc, Reduction3D",
        "def fun(float(M, N, P) I) -> (O) { O(m) +=! I(m, r_n, r_p) }",
        {"I": normal("M", "N", "P")},
        lambda i: (i.sum(axis=(1, 2)),),
        at("M N P", 123, 12, 16),
        (at("M N P", 1, 7, 13),),
        terms=("N", "P"),
    ),
    Case(
        "sum_then_copy",
        "test_core.cc, Reduction2D2StmtA",
        """
        def fun(float(M, N) I) -> (O1, O2) {
            O1(m) +=! I(m, r_n)
            O2(m)  = O1(m)
        }
        """,
        {"I": normal("M", "N")},
        lambda i: (i.sum(axis=1), i.sum(axis=1)),
        at("M N", 123, 13),
        (at("M N", 7, 129),),
        terms=("N",),
    ),
    Case(
        "copy_then_sum_then_copy",
        "test_core.cc, Reduction2D2StmtB and Reduction2D3Stmt",
        """
        def fun(float(M, N) I) -> (O1, O2, O3) {
            O1(m, n) =   I(m, n)
            O2(m)   +=! O1(m, r_n)
            O3(m)    =  O2(m)
        }
        """,
        {"I": normal("M", "N")},
        lambda i: (i, i.sum(axis=1), i.sum(axis=1)),
        at("M N", 123, 13),
        (at("M N", 7, 129), at("M N", 3, 0)),
        terms=("N",),
    ),
    Case(
        "sum_of_products_and_sum",
        "test_mapper_llvm.cc, MultiStmt; test_cuda_mapper.cc, MultiStmt",
        """
        def fun(float(N, M, K, L) A, float(N, M) B, float(N, M) C, float(N, M) D)
        -> (O1, O2, O3)
        {
            O1(n, m) +=! A(n, m, r_k, r_l) * B(n, m)
            O2(n, m) = C(n, m) * D(n, m)
            O3(n, m) = O1(n, m) + O2(n, m)
        }
        """,
        {"A": normal("N", "M", "K", "L"), "B": normal("N", "M"), "C": normal("N", "M"), "D": normal("N", "M")},
        lambda a, b, c, d: (a.sum(axis=(2, 3)) * b, c * d, a.sum(axis=(2, 3)) * b + c * d),
        at("N M K L", 40, 24, 21, 33),
        (at("N M K L", 1, 1, 1, 1), at("N M K L", 3, 7, 13, 5)),
        terms=("K", "L"),
    ),
    Case(
        "mean_of_rows",
        "test_cuda_mapper.cc, BeforeInstruction; tc/benchmarks/moments.h, mean_2D_1D",
        """
        def fun(float(N, K) I) -> (O) {
            O(n) +=! I(n, r_n)
            O(n) = O(n) / (K)
        }
        """,
        {"I": normal("N", "K")},
        lambda i: (i.mean(axis=1),),
        at("N K", 128, 2304),
        (at("N K", 1, 1), at("N K", 7, 129)),
        terms=("K",),
    ),
    Case(
        "mean_of_fixed_rows",
        "test_cuda_mapper.cc, Mean2DNonParametric",
        """
        def fun(float(4608, 1024) I) -> (O) {
            O(n) +=! I(n, r_n)
            O(n) = O(n) / (1024)
        }
        """,
        {"I": normal(4608, 1024)},
        lambda i: (i.mean(axis=1),),
        {},
        (),
        terms=(),
        note="the number of rows in the text cut from 36864 to 1/8",
    ),
    Case(
        "accumulate_twice_and_divide",
        "test_cuda_mapper.cc, AfterInstruction and BetweenInstructions",
        """
        def fun(float(N, K) I, float(N) O0) -> (O) {
            O(n) = 0.0 where n in 0:N
            O(n) += O0(n)
            O(n) += I(n, r_n)
            O(n) = O(n) / (K)
        }
        """,
        {"I": normal("N", "K"), "O0": normal("N")},
        lambda i, o: ((i.sum(axis=1) + o) / i.shape[1],),
        at("N K", 128, 256),
        (at("N K", 1, 1), at("N K", 7, 129)),
        terms=("K",),
    ),
    *(
        Case(
            name,
            f"{_MOMENTS_SOURCE}, {definition}",
            _MOMENTS,
            {"I": uniform(0, 1, "N", "K")},
            formula,
            at("N K", 128, 2304),
            _MOMENTS_SIZES if definition != "moments2_2D_1D" and definition != "mean_2D_1D" else _MOMENTS_SIZES[:2],
            definition=definition,
            terms=("K",),
        )
        for name, definition, formula in (
            ("moments_sum", "sum_2D_1D", lambda i: (i.sum(axis=1),)),
            ("moments_mean", "mean_2D_1D", lambda i: (i.mean(axis=1),)),
            ("moments_squares", "sum_squares_2D_1D", lambda i: ((i**2).sum(axis=1),)),
            ("moments_sum_and_squares", "sum_and_squares_2D_1D", lambda i: (i.sum(axis=1), (i**2).sum(axis=1))),
            ("moments", "moments2_2D_1D", lambda i: (i.mean(axis=1), i.var(axis=1))),
        )
    ),
    Case(
        "moments_variance",
        "tc/benchmarks/moments.h, var_2D_1D; test_cuda_mapper.cc, EmptyMapping",
        _MOMENTS,
        {"I": uniform(0, 1, "N", "K"), "mean": uniform(0, 1, "N")},
        lambda i, mean: ((i**2).mean(axis=1) - mean**2,),
        at("N K", 128, 2304),
        (at("N K", 1, 1), at("N K", 7, 129)),
        definition="var_2D_1D",
        terms=("K",),
    ),
    *(
        Case(
            f"sum_of_{type_name}",
            "test_tc2halide.cc, Types",
            f"def test_type({type_name}(N) A) -> (B) {{ B(k) +=! A(i) where k in 0:1 }}",
            {"A": make},
            lambda a: (a.sum(keepdims=True),),
            at("N", 100),
            (at("N", 1), at("N", 7)),
            terms=("N",),
        )
        for type_name, make in (
            ("uint8", integers(0, 3, "N", dtype="uint8")),
            ("uint16", integers(0, 500, "N", dtype="uint16")),
            ("uint32", integers(0, 1 << 20, "N", dtype="uint32")),
            ("uint64", integers(0, 1 << 40, "N", dtype="uint64")),
            ("int8", integers(-1, 2, "N", dtype="int8")),
            ("int16", integers(-300, 300, "N", dtype="int16")),
            ("int32", integers(-(1 << 20), 1 << 20, "N", dtype="int32")),
            ("int64", integers(-(1 << 40), 1 << 40, "N", dtype="int64")),
            ("float16", normal("N", dtype="float16")),
            ("float32", normal("N", dtype="float32")),
            ("float64", normal("N", dtype="float64")),
            ("float", normal("N", dtype="float32")),
            ("double", normal("N", dtype="float64")),
        )
    ),
    Case(
        "product_of_few",
        "a product that starts from a given value",
        "def f(float(3,4) A) -> (p) { p(i) *= A(i,j) }",
        {"A": fixed([[1.0, 2.0, 3.0, 4.0], [0.5, 2.0, -1.0, 1.0], [3.0, 0.0, 1.0, 1.0]], "float32")},
        lambda a, p: (a.prod(axis=1) * p,),
        {},
        (),
        in_out={"p": fixed([2, 3, 4], "float32")},
    ),
    Case(
        "greatest_and_its_index",
        "numpy.argmax, with ties",
        "def argmax(float(N,M) x) -> (m, k) { (m(i), k(i)) max=! (x(i,j), j) }",
        {"x": integers(0, 9, "N", "M", dtype="float32")},
        lambda x: (x.max(axis=1), x.argmax(axis=1)),
        at("N M", 32, 250),
        (at("N M", 1, 1), at("N M", 13, 67), at("N M", 0, 0)),
    ),
    Case(
        "least_of_columns_and_its_index",
        "numpy.argmin",
        "def argmin(float(N,M) x) -> (m, k) { (m(j), k(j)) min=! (x(i,j), i) }",
        {"x": normal("N", "M")},
        lambda x: (x.min(axis=0), x.argmin(axis=0)),
        at("N M", 250, 32),
        (at("N M", 1, 1), at("N M", 67, 13)),
    ),
    Case(
        "sparse_matrix_times_vector",
        "scipy.sparse, CSR",
        "def spmv(int32(P) R, int32(Z) col, float(Z) v, float(M) x) -> (y)"
        " { y(i) +=! v(j) * x(col(j)) where j in R(i):R(i+1) }",
        {
            "R": lambda rng, sizes: np.sort(rng.integers(0, sizes["Z"] + 1, sizes["P"])).astype(np.int32),
            "col": indices("M", "Z"),
            "v": normal("Z"),
            "x": normal("M"),
        },
        lambda r, col, v, x: (np.array([v[a:b] @ x[col[a:b]] for a, b in pairwise(r.astype(int))], dtype=np.float64),),
        at("P Z M", 65, 700, 129),
        (at("P Z M", 2, 1, 1), at("P Z M", 14, 67, 5)),
        terms=("Z",),
        even_sizes=at("P Z M", 121, 240, 24),
    ),
)
