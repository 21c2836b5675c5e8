"""Lookup tables, gathers and transposed products."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, Maker, at, indices, integers, normal
from tests.comprehensions.formulas import embedding_sum

_TWO_TABLES = """
def 2LUT(float(E1,D) LUT1, int(B,L1) I1,
         float(E2,D) LUT2, int(B,L2) I2) -> (O1, O2) {
    O1(i,j) +=! LUT1(I1(i,k),j)
    O2(i,j) +=! LUT2(I2(i,k),j)
}
"""
_TABLES: dict[str, Maker] = {
    "LUT1": normal("E1", "D"),
    "I1": indices("E1", "B", "L1"),
    "LUT2": normal("E2", "D"),
    "I2": indices("E2", "B", "L2"),
}
_TABLE_SIZES = "E1 E2 D B L1 L2"


CASES = (
    Case(
        "gather",
        "paper, Section 2",
        "def gather(float(N) X, int(A,B) I) -> (Z) { Z(i,j) = X(I(i,j)) }",
        {"X": normal("N"), "I": indices("N", "A", "B")},
        lambda x, i: (np.take(x, i),),
        at("N A B", 1000, 64, 64),
        (at("N A B", 1, 1, 1), at("N A B", 129, 7, 13), at("N A B", 0, 0, 5)),
    ),
    Case(
        "gather_of_integers",
        "test_core.cc, AllMustWrites",
        "def gather(int32(N) A, int32(N) B) -> (O) { O(i) = A(B(i)) where i in 0:N }",
        {"A": integers(-100, 100, "N"), "B": indices("N", "N")},
        lambda a, b: (np.take(a, b),),
        at("N", 128),
        (at("N", 1), at("N", 129)),
    ),
    Case(
        "gather_clamped",
        "docs/source/inference.rst, preconditions: the clamped lookup",
        "def lut(float(J) B, int(I) C) -> (A) { A(i) = B(max(min(C(i), J-1), 0)) }",
        {"B": normal("J"), "C": integers(-50, 150, "I")},
        lambda b, c: (np.take(b, c, mode="clip"),),
        at("J I", 100, 128),
        (at("J I", 1, 7), at("J I", 13, 129)),
    ),
    Case(
        "indexing",
        "layers.yaml, indexing; test_compile_and_run.cc, Indexing",
        """
        def indexing(float(H, W) input, int32(L) index) -> (output) {
            output(l, w) = input(index(l), w) where l in 0:2
        }
        """,
        {"input": normal("H", "W"), "index": indices("H", "L")},
        lambda data, index: (data[index[:2]],),
        at("H W L", 3, 4, 2),
        (at("H W L", 7, 129, 2), at("H W L", 13, 7, 5)),
        even_sizes=at("H W L", 120, 120, 2),
    ),
    Case(
        "lookup_table",
        "layers.yaml, lookup_table; test/cuda/test_tc_mapper.cc, LUT",
        "def lookup_table(float(B, R) LUT, int32(B, N) I) -> (O) { O(b, n) +=! LUT(I(b, n), r) }",
        {"LUT": normal("B", "R"), "I": indices("B", "B", "N")},
        lambda table, index: (table.sum(axis=1)[index],),
        at("B N R", 17, 82, 22),
        (at("B N R", 1, 1, 1), at("B N R", 13, 7, 129)),
        terms=("R",),
    ),
    Case(
        "shifted_lookup",
        "test_cuda_mapper.cc, NonAffineBoundLHSInBinOp",
        "def shiftedLut(float(E, D) LUT, int32(B, L) I) -> (O) { O(i, j) +=! LUT(I(i, k) + 1, j) }",
        {"LUT": normal("E", "D"), "I": indices("EM1", "B", "L")},
        lambda table, index: (embedding_sum(table, index + 1),),
        at("E EM1 D B L", 100, 99, 16, 32, 20),
        (at("E EM1 D B L", 8, 7, 13, 5, 11),),
        even_sizes=at("E EM1 D B L", 120, 119, 40, 24, 24),
        terms=("L",),
        note="EM1 is E - 1",
    ),
    Case(
        "skewed_lookup",
        "test_cuda_mapper.cc, NonAffineBoundRHSInBinOp",
        "def shiftedLut(float(E, D) LUT, int32(B, L) I) -> (O) { O(i, j) +=! LUT(1 + j + I(i, k), j) }",
        {"LUT": normal("E", "D"), "I": indices("EMD", "B", "L")},
        lambda table, index: (
            table[1 + np.arange(table.shape[1]) + index[:, :, None], np.arange(table.shape[1])].sum(axis=1),
        ),
        at("E EMD D B L", 100, 84, 16, 32, 20),
        (at("E EMD D B L", 20, 7, 13, 5, 11),),
        even_sizes=at("E EMD D B L", 120, 80, 40, 24, 24),
        terms=("L",),
        note="EMD is E - D or less",
    ),
    Case(
        "one_lookup_table",
        "paper, Figure 6 (1LUT); tc/benchmarks/MLP_model.cc, _1LUT",
        "def 1LUT(float(E1,D) LUT1, int(B,L1) I1) -> (O1) { O1(i,j) +=! LUT1(I1(i,k),j) }",
        {"LUT1": normal("E1", "D"), "I1": indices("E1", "B", "L1")},
        lambda table, index: (embedding_sum(table, index),),
        at("E1 D B L1", 100000, 64, 128, 50),
        (at("E1 D B L1", 1, 1, 1, 1), at("E1 D B L1", 129, 13, 7, 5), at("E1 D B L1", 7, 3, 5, 0)),
        terms=("L1",),
        note="E1 as in the public benchmark, 10000000 in the paper",
    ),
    Case(
        "two_lookup_tables",
        "paper, Section 7 and Figure 15 (2LUT)",
        _TWO_TABLES,
        _TABLES,
        lambda table1, index1, table2, index2: (embedding_sum(table1, index1), embedding_sum(table2, index2)),
        at(_TABLE_SIZES, 100000, 100000, 64, 128, 50, 50),
        (at(_TABLE_SIZES, 1, 1, 1, 1, 1, 1), at(_TABLE_SIZES, 129, 7, 13, 5, 11, 3)),
        even_sizes=at(_TABLE_SIZES, 120, 120, 40, 24, 24, 24),
        terms=("L1", "L2"),
        note="E1 and E2 as in the public benchmark, 10000000 in the paper",
    ),
    Case(
        "transposed_product",
        "paper, Section 7 (C3); tc/benchmarks/MLP_model.cc, _C3",
        "def C3(float(B,WX) I3, float(WY,WX) W) -> (C3) { C3(b,wy) +=! I3(b,wxx) * W(wy,wxx) }",
        {"I3": normal("B", "WX"), "W": normal("WY", "WX")},
        lambda data, weight: (data @ weight.T,),
        at("B WX WY", 128, 1000, 1024),
        (at("B WX WY", 7, 129, 13),),
        terms=("WX",),
    ),
    Case(
        "transposed_product_accumulate",
        "paper, Figure 15 (C3 inside prodModel accumulates)",
        "def C3(float(B,WX) I3, float(WY,WX) W) -> (C3) { C3(b,wy) += I3(b,wxx) * W(wy,wxx) }",
        {"I3": normal("B", "WX"), "W": normal("WY", "WX")},
        lambda data, weight, initial: (initial + data @ weight.T,),
        at("B WX WY", 128, 1000, 1024),
        (at("B WX WY", 7, 13, 1),),
        in_out={"C3": normal("B", "WY")},
        terms=("WX",),
    ),
)
