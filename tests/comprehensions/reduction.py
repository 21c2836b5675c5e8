"""Sums, extrema and pooling."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, Integers, Maker, at, fixed, integers, normal, scalar_size, uniform
from tests.comprehensions.formulas import Floats, average_pool, max_pool

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

_NEAREST_CODE = """
# mindis as a single kernel will require grid synchronization to run efficiently
def mindis(float(M, 256) L, uint8(N, M) Codes) -> (S, v, min_idx) {
          S(n) +=! L(r_m, int32(Codes(n, r_m)))
          v  min=! S(r_n)
    min_idx  min=! (S(r_n) == v) ? r_n : N
}
def reduce_codes(float(M, 256) L, uint8(N, M) Codes) -> (S) {
    S(n) +=! L(r_m, int32(Codes(n, r_m)))
}
def min_2d(float(N) S) -> (v) {
    v min=! S(r_n)
}
def argmin_2d(float(N) S, float v) -> (min_idx) {
    min_idx min=! (S(r_n) == v) ? r_n : N
}
"""
_NEAREST_CODE_STAGED = """
def min_2d(float(D, NBYD) S) -> (V) {
    V(d) min=! S(d, r_nbyd)
}
def min_1d(float(D) V) -> (v) {
    v min=! V(r_d)
}
def argmin_2d(float(D, NBYD) S, float v) -> (MinIdx) {
    MinIdx(d) min=!
        (S(d, r_nbyd) == v) ? d * NBYD + r_nbyd : NBYD * D
}
def argmin_1d(float(N) S, int32(D) MinIdx) -> (min_idx) {
    min_idx min=! (MinIdx(r_d) < N) ? r_d : N
}
"""
_NEAREST_CODES = """
def mindis(float(K, M, 256) L, uint8(N, M) Codes) -> (S, V, MinIdx) {
         S(k, n)   +=!  L(k, r_m, int32(Codes(n, r_m)))
         V(k)    min=!  S(k, r_n)
    MinIdx(k)    min=! (S(k, r_n) == V(k)) ? r_n : N
}
"""
_NEAREST_CODES_STAGED = """
def min_2d(float(K, D, NBYD) S) -> (V2) {
    V2(k, d) min=! S(k, d, r_nbyd)
}
def min_1d(float(K, D) V2) -> (V) {
    V(k) min=! V2(k, r_d)
}
def argmin_2d(float(K, D, NBYD) S, float(K) V) -> (MinIdx2) {
    MinIdx2(k, d) min=!
        (S(k, d, r_nbyd) == V(k)) ? d * NBYD + r_nbyd : NBYD * D
}
def argmin_1d(float(K, N) S, int32(K, D) MinIdx2) -> (MinIdx) {
    MinIdx(k) min=! (MinIdx2(k, r_d) < N) ? r_d : N
}
"""
_NEAREST_SOURCE = "python/examples/min_distance.py"

_MAX_OVER = (at("B C H W", 1, 1, 2, 2), at("B C H W", 2, 3, 7, 13), at("B C H W", 0, 3, 4, 6))


def _distances(table: Floats, codes: Integers) -> Floats:
    return np.asarray(table[np.arange(len(table)), codes].sum(axis=1), dtype=np.float64)


def _first_where_equal(values: Floats, sought: float | Floats, otherwise: int) -> Integers:
    """Least index along the last axis where the value is the one sought."""
    size = values.shape[-1]
    equal = values == np.expand_dims(np.asarray(sought), -1)
    return np.asarray(np.where(equal, np.arange(size), otherwise).min(axis=-1, initial=otherwise))


def _staged_argmin(values: Floats, sought: Floats, width: int) -> Integers:
    """Least flat index per row of blocks where the value is the one sought, or the number of all values."""
    blocks = values.shape[-2]
    first = _first_where_equal(values, sought, width)
    return np.where(first == width, blocks * width, np.arange(blocks) * width + first)


def _small(*shape: str | int) -> Maker:
    """Few different values, all exact, so that extrema are attained more than once."""
    return integers(0, 9, *shape, dtype="float32")


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
    Case(
        "max_pool_2x2",
        "paper, Section 2 (maxpool2x2)",
        """
        def maxpool2x2(float(B,C,H,W) in) -> (out) {
            out(b,c,i,j) max=! in(b,c, 2 * i + kw, 2 * j + kh)
                where kw in 0:2, kh in 0:2
        }
        """,
        {"in": normal("B", "C", "H", "W")},
        lambda data: (max_pool(data, (2, 2), (2, 2)),),
        at("B C H W", 4, 16, 32, 32),
        _MAX_OVER,
    ),
    Case(
        "max_pool_2x2_accumulate",
        "docs/source/introduction.rst, simple 2-D max pooling",
        """
        def maxpool2x2(float(B,C,H,W) input) -> (output) {
          output(b,c,i,j) max= input(b,c,2*i + kw, 2*j + kh)
            where kw in 0:2, kh in 0:2
        }
        """,
        {"input": normal("B", "C", "H", "W")},
        lambda data, output: (np.maximum(output, max_pool(data, (2, 2), (2, 2))),),
        at("B C H W H2 W2", 2, 3, 16, 16, 8, 8),
        (at("B C H W H2 W2", 2, 3, 7, 13, 3, 6),),
        in_out={"output": normal("B", "C", "H2", "W2")},
    ),
    Case(
        "max_pool",
        "layers.yaml and layers_database.rst, maxpool",
        """
        def maxpool(float(B, C, H, W) input) -> (output) {
            output(b, c, h, w) max=! input(b, c, h * 2 + kh, w * 3 + kw) where kh in 0:3, kw in 0:4
        }
        """,
        {"input": normal("B", "C", "H", "W")},
        lambda data: (max_pool(data, (3, 4), (2, 3)),),
        at("B C H W", 2, 8, 24, 24),
        (at("B C H W", 1, 1, 3, 4), at("B C H W", 2, 3, 7, 13)),
    ),
    Case(
        "max_pool_by_arguments",
        "max pooling whose window and stride are arguments",
        """
        def maxpool(float(B, C, H, W) input, int kernel, int stride) -> (output) {
            output(b, c, h, w) max=! input(b, c, h * stride + kh, w * stride + kw)
                where kh in 0:kernel, kw in 0:kernel
        }
        """,
        {"input": normal("B", "C", "H", "W"), "kernel": scalar_size("KERNEL"), "stride": scalar_size("STRIDE")},
        lambda data, kernel, stride: (max_pool(data, (kernel, kernel), (stride, stride)),),
        at("B C H W KERNEL STRIDE", 2, 8, 24, 24, 3, 2),
        (at("B C H W KERNEL STRIDE", 1, 1, 1, 1, 1, 1), at("B C H W KERNEL STRIDE", 2, 3, 7, 13, 2, 3)),
    ),
    Case(
        "average_pool",
        "layers_database.rst, writing_layers.rst, python/tests/test_tc.py, test_scalar: avgpool",
        """
        def avgpool(float(B, C, H, W) input) -> (output) {
            output(b, c, h, w) +=!
                input(b, c, h * 1 + r_kh, w * 1 + r_kw) / (2 * 2)
                where r_kh in 0:2, r_kw in 0:2
        }
        """,
        {"input": normal("B", "C", "H", "W")},
        lambda data: (average_pool(data, (2, 2), (1, 1)),),
        at("B C H W", 32, 3, 10, 10),
        (at("B C H W", 1, 1, 4, 4), at("B C H W", 2, 3, 7, 13), at("B C H W", 0, 3, 7, 13)),
    ),
    Case(
        "sum_pool_accumulate",
        "layers.yaml, avgpool; test_python/test_scalar_tc.py (a sum without division or initialization)",
        """
        def avgpool(float(B, C, H, W) input) -> (output) {
          output(b, c, h, w) += input(b, c, h * 2 + kh, w * 2 + kw) where kh in 0:2, kw in 0:2
        }
        """,
        {"input": normal("B", "C", "H", "W")},
        lambda data, output: (output + 4 * average_pool(data, (2, 2), (2, 2)),),
        at("B C H W H2 W2", 32, 3, 10, 10, 5, 5),
        (at("B C H W H2 W2", 2, 3, 7, 13, 3, 6),),
        in_out={"output": normal("B", "C", "H2", "W2")},
    ),
    Case(
        "average_pool_by_sum",
        "docs/source/inference.rst, average_pool_2 (strided indexing with offsets)",
        "def average_pool_2(float(I) B) -> (A) { A(i) = B(2*i) + B(2*i + 1) }",
        {"B": normal("I")},
        lambda b: (b[: len(b) // 2 * 2].reshape(-1, 2).sum(axis=1),),
        at("I", 64),
        (at("I", 1), at("I", 129), at("I", 0)),
    ),
    Case(
        "average_pool_by_where",
        "docs/source/inference.rst, average_pool_2 (written there with '=', which reduces nothing)",
        "def average_pool_2(float(I) B) -> (A) { A(i) +=! B(2*i + k) where k in 0:2 }",
        {"B": normal("I")},
        lambda b: (b[: len(b) // 2 * 2].reshape(-1, 2).sum(axis=1),),
        at("I", 64),
        (at("I", 7),),
    ),
    Case(
        "nearest_code",
        f"{_NEAREST_SOURCE}, mindis",
        _NEAREST_CODE,
        {"L": _small("M", 256), "Codes": integers(0, 256, "N", "M", dtype="uint8")},
        lambda table, codes: (
            _distances(table, codes),
            np.asarray(_distances(table, codes).min()),
            np.asarray(_distances(table, codes).argmin()),
        ),
        at("N M", 1000, 32),
        (at("N M", 1, 1), at("N M", 129, 7)),
        definition="mindis",
        undecided=("min_idx",),
    ),
    Case(
        "nearest_code_distances",
        f"{_NEAREST_SOURCE}, reduce_codes",
        _NEAREST_CODE,
        {"L": normal("M", 256), "Codes": integers(0, 256, "N", "M", dtype="uint8")},
        lambda table, codes: (_distances(table, codes),),
        at("N M", 1000, 32),
        (at("N M", 129, 7), at("N M", 3, 0)),
        definition="reduce_codes",
        terms=("M",),
    ),
    Case(
        "minimum",
        f"{_NEAREST_SOURCE}, min_2d",
        _NEAREST_CODE,
        {"S": normal("N")},
        lambda s: (s.min(initial=np.inf),),
        at("N", 1000),
        (at("N", 1), at("N", 129), at("N", 0)),
        definition="min_2d",
    ),
    Case(
        "argument_of_minimum",
        f"{_NEAREST_SOURCE}, argmin_2d",
        _NEAREST_CODE,
        {"S": _small("N"), "v": lambda rng, sizes: 3.0},
        lambda s, v: (_first_where_equal(s, v, len(s)),),
        at("N", 1000),
        (at("N", 1), at("N", 129)),
        definition="argmin_2d",
    ),
    Case(
        "minimum_of_blocks",
        f"{_NEAREST_SOURCE}, the staged min_2d",
        _NEAREST_CODE_STAGED,
        {"S": normal("D", "NBYD")},
        lambda s: (s.min(axis=1),),
        at("D NBYD", 1000, 100),
        (at("D NBYD", 7, 129),),
        definition="min_2d",
    ),
    Case(
        "minimum_of_minima",
        f"{_NEAREST_SOURCE}, the staged min_1d",
        _NEAREST_CODE_STAGED,
        {"V": normal("D")},
        lambda v: (v.min(),),
        at("D", 1000),
        (at("D", 7),),
        definition="min_1d",
    ),
    Case(
        "argument_of_minimum_of_blocks",
        f"{_NEAREST_SOURCE}, the staged argmin_2d",
        _NEAREST_CODE_STAGED,
        {"S": _small("D", "NBYD"), "v": lambda rng, sizes: 0.0},
        lambda s, v: (_staged_argmin(s, np.full(len(s), v), s.shape[1]),),
        at("D NBYD", 1000, 100),
        (at("D NBYD", 13, 7), at("D NBYD", 1, 1)),
        definition="argmin_2d",
    ),
    Case(
        "argument_of_minimum_of_minima",
        f"{_NEAREST_SOURCE}, the staged argmin_1d",
        _NEAREST_CODE_STAGED,
        {"S": normal("N"), "MinIdx": integers(90, 110, "D")},
        lambda s, index: (np.where(index < len(s), np.arange(len(index)), len(s)).min(initial=len(s)),),
        at("N D", 100, 10),
        (at("N D", 91, 7), at("N D", 129, 1)),
        definition="argmin_1d",
    ),
    Case(
        "nearest_codes",
        f"{_NEAREST_SOURCE}, mindis with K tables",
        _NEAREST_CODES,
        {"L": _small("K", "M", 256), "Codes": integers(0, 256, "N", "M", dtype="uint8")},
        lambda tables, codes: (
            np.stack([_distances(table, codes) for table in tables]),
            np.stack([_distances(table, codes).min() for table in tables]),
            np.stack([_distances(table, codes).argmin() for table in tables]),
        ),
        at("K N M", 16, 10000, 32),
        (at("K N M", 3, 129, 7),),
        undecided=("MinIdx",),
        note="N cut from 100000 to 1/10",
    ),
    Case(
        "minima_of_blocks",
        f"{_NEAREST_SOURCE}, min_2d and min_1d with K tables",
        _NEAREST_CODES_STAGED,
        {"S": normal("K", "D", "NBYD")},
        lambda s: (s.min(axis=2),),
        at("K D NBYD", 16, 1000, 100),
        (at("K D NBYD", 3, 7, 129),),
        definition="min_2d",
    ),
    Case(
        "arguments_of_minima_of_blocks",
        f"{_NEAREST_SOURCE}, argmin_2d with K tables",
        _NEAREST_CODES_STAGED,
        {"S": _small("K", "D", "NBYD"), "V": integers(0, 3, "K", dtype="float32")},
        lambda s, v: (_staged_argmin(s, np.broadcast_to(v[:, None], s.shape[:2]), s.shape[2]),),
        at("K D NBYD", 16, 1000, 100),
        (at("K D NBYD", 3, 7, 13),),
        definition="argmin_2d",
    ),
    Case(
        "arguments_of_minima_of_minima",
        f"{_NEAREST_SOURCE}, min_1d and argmin_1d with K tables",
        _NEAREST_CODES_STAGED,
        {"S": normal("K", "N"), "MinIdx2": integers(90, 110, "K", "D")},
        lambda s, index: (
            np.where(index < s.shape[1], np.arange(index.shape[1]), s.shape[1]).min(axis=1, initial=s.shape[1]),
        ),
        at("K N D", 16, 1000, 1000),
        (at("K N D", 3, 91, 7),),
        definition="argmin_1d",
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
)
