"""Contractions of tensors: outer products, Kronecker factors, block-diagonal matrices."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, indices, normal, permutation

_KRONECKER = """
def Kronecker3_1(float(D2, N2) W2, float(M, N0, N1, N2) X) -> (XW2) {
   XW2(m, n0, n1, d2)   +=! X(m, n0, n1, r_n2) * W2(d2, r_n2)
}
def Kronecker3_2(float(D1, N1) W1, float(M, N0, N1, D2) XW2) -> (XW2W1) {
   XW2W1(m, n0, d1, d2) +=! XW2(m, n0, r_n1, d2) * W1(d1, r_n1)
}
def Kronecker3_3(float(D0, N0) W0, float(M, N0, D1, D2) XW2W1) -> (Y) {
   Y(m, d0, d1, d2)     +=! XW2W1(m, r_n0, d1, d2) * W0(d0, r_n0)
}
def Kronecker3Full(float(D0, N0) W0, float(D1, N1) W1,
             float(D2, N2) W2, float(M, N0, N1, N2) X) -> (Y, XW2, XW2W1) {
     XW2(m, n0, n1, d2) +=!     X(m,   n0,   n1, r_n2) * W2(d2, r_n2)
   XW2W1(m, n0, d1, d2) +=!   XW2(m,   n0, r_n1,   d2) * W1(d1, r_n1)
       Y(m, d0, d1, d2) +=! XW2W1(m, r_n0,   d1,   d2) * W0(d0, r_n0)
}
"""
_KRONECKER_SIZES = "M D0 D1 D2 N0 N1 N2"
_KRONECKER_CUT = "M cut from 256 to 1/8"
_BLOCK_DIAGONAL = """
# The permutation after the block-diagonal product, fissioned in two.
def blockdiagperm2dfissioned_1(float(B, K, NBYK) I, float(K, NBYK, NBYK) W) -> (O)
{
    O(b, k, nbyk1) +=! I(b, k, r_nbyk0) * W(k, r_nbyk0, nbyk1)
}
def blockdiagperm2dfissioned_2(float(B, N) I, int32(N) Idx) -> (O) {
    O(b, n) = I(b, Idx(n)) where n in 0:N
}
def blockdiagperm2d(float(B, K, NBYK) I, float(K, NBYK, NBYK) W, int32(K, NBYK) IdxR, int32(K, NBYK) IdxC)
    -> (O1, O2) {
    O1(b, k, nbyk1) +=!  I(b, k, r_nbyk0) * W(k, r_nbyk0, nbyk1)
    O2(b, k, nbyk)   =  O1(b, IdxR(k, nbyk), IdxC(k, nbyk))
}
"""


CASES = (
    Case(
        "outer_product_mm",
        "paper, Section 5 (outerProductMM)",
        """
        def outerProductMM(float(P,Q,R) A, float(S,R,T) B) -> (O) {
            O(p,s,q,t) +=! A(p,q,r) * B(s,r,t)
        }
        """,
        {"A": normal("P", "Q", "R"), "B": normal("S", "R", "T")},
        lambda a, b: (np.tensordot(a, b, axes=(2, 1)).transpose(0, 2, 1, 3),),
        at("P Q R S T", 8, 16, 16, 8, 16),
        (at("P Q R S T", 1, 7, 1, 1, 13), at("P Q R S T", 3, 7, 11, 2, 5), at("P Q R S T", 2, 0, 3, 2, 5)),
        even_sizes=at("P Q R S T", 24, 12, 12, 40, 8),
        terms=("R",),
    ),
    Case(
        "outer_product_mm_qpts",
        "paper, Section 5 (the QPTS version of outerProductMM)",
        "def outerProductMM(float(P,Q,R) A, float(S,R,T) B) -> (O) { O(q,p,t,s) +=! A(p,q,r) * B(s,r,t) }",
        {"A": normal("P", "Q", "R"), "B": normal("S", "R", "T")},
        lambda a, b: (np.einsum("pqr,srt->qpts", a, b),),
        at("P Q R S T", 8, 16, 16, 8, 16),
        (at("P Q R S T", 3, 7, 11, 2, 5),),
        even_sizes=at("P Q R S T", 40, 24, 12, 8, 12),
        terms=("R",),
    ),
    Case(
        "tensordot",
        "docs/source/tutorials/tutorial_tensordot_with_tc.rst; tc/examples/tensordot.cc; README.md",
        """
        def tensordot(float(N, C1, C2, H, W) I0,
                      float(N, C2, C3, H, W) I1)  -> (O)
        {
            O(n, c1, c3, h, w) +=! I0(n, c1, r_c2, h, w) * I1(n, r_c2, c3, h, w)
        }
        """,
        {"I0": normal("N", "C1", "C2", "H", "W"), "I1": normal("N", "C2", "C3", "H", "W")},
        lambda x, y: (np.einsum("nabhw,nbchw->nachw", x, y, optimize=True),),
        at("N C1 C2 C3 H W", 16, 8, 16, 2, 17, 25),
        (at("N C1 C2 C3 H W", 1, 1, 1, 1, 1, 1), at("N C1 C2 C3 H W", 2, 5, 7, 3, 11, 13)),
        even_sizes=at("N C1 C2 C3 H W", 24, 40, 8, 12, 4, 4),
        terms=("C2",),
    ),
    Case(
        "kronecker_1",
        "tc/benchmarks/kronecker.h",
        _KRONECKER,
        {"W2": normal("D2", "N2"), "X": normal("M", "N0", "N1", "N2")},
        lambda w, x: (x @ w.T,),
        at(_KRONECKER_SIZES, 32, 16, 16, 16, 32, 32, 32),
        (at(_KRONECKER_SIZES, 3, 2, 5, 7, 3, 11, 13),),
        even_sizes=at(_KRONECKER_SIZES, 24, 8, 8, 8, 40, 12, 12),
        definition="Kronecker3_1",
        terms=("N2",),
        note=_KRONECKER_CUT,
    ),
    Case(
        "kronecker_2",
        "tc/benchmarks/kronecker.h",
        _KRONECKER,
        {"W1": normal("D1", "N1"), "XW2": normal("M", "N0", "N1", "D2")},
        lambda w, x: (np.moveaxis(np.tensordot(x, w, axes=(2, 1)), -1, 2),),
        at(_KRONECKER_SIZES, 32, 16, 16, 16, 32, 32, 32),
        (at(_KRONECKER_SIZES, 3, 2, 5, 7, 3, 11, 13),),
        even_sizes=at(_KRONECKER_SIZES, 24, 8, 12, 8, 40, 12, 8),
        definition="Kronecker3_2",
        terms=("N1",),
        note=_KRONECKER_CUT,
    ),
    Case(
        "kronecker_3",
        "tc/benchmarks/kronecker.h",
        _KRONECKER,
        {"W0": normal("D0", "N0"), "XW2W1": normal("M", "N0", "D1", "D2")},
        lambda w, x: (np.moveaxis(np.tensordot(x, w, axes=(1, 1)), -1, 1),),
        at(_KRONECKER_SIZES, 32, 16, 16, 16, 32, 32, 32),
        (at(_KRONECKER_SIZES, 3, 2, 5, 7, 3, 11, 13),),
        even_sizes=at(_KRONECKER_SIZES, 24, 40, 12, 8, 12, 8, 8),
        definition="Kronecker3_3",
        terms=("N0",),
        note=_KRONECKER_CUT,
    ),
    Case(
        "kronecker_full",
        "tc/benchmarks/kronecker.h",
        _KRONECKER,
        {
            "W0": normal("D0", "N0"),
            "W1": normal("D1", "N1"),
            "W2": normal("D2", "N2"),
            "X": normal("M", "N0", "N1", "N2"),
        },
        lambda w0, w1, w2, x: (
            np.einsum("mabc,ia,jb,kc->mijk", x, w0, w1, w2, optimize=["einsum_path", (0, 1), (0, 1), (0, 1)]),
            x @ w2.T,
            np.moveaxis(np.tensordot(x @ w2.T, w1, axes=(2, 1)), -1, 2),
        ),
        at(_KRONECKER_SIZES, 32, 16, 16, 16, 32, 32, 32),
        (at(_KRONECKER_SIZES, 1, 1, 1, 1, 1, 1, 1), at(_KRONECKER_SIZES, 3, 2, 5, 7, 3, 11, 13)),
        even_sizes=at(_KRONECKER_SIZES, 24, 40, 12, 8, 8, 12, 12),
        definition="Kronecker3Full",
        terms=("N0", "N1", "N2"),
        note=_KRONECKER_CUT,
    ),
    Case(
        "block_diagonal",
        "tc/examples/blockdiagperm.cc, blockdiagperm2dfissioned_1",
        _BLOCK_DIAGONAL,
        {"I": normal("B", "K", "NBYK"), "W": normal("K", "NBYK", "NBYK")},
        lambda i, w: (np.matmul(i.transpose(1, 0, 2), w).transpose(1, 0, 2),),
        at("B K NBYK", 128, 10, 50),
        (at("B K NBYK", 7, 3, 13), at("B K NBYK", 1, 0, 5)),
        even_sizes=at("B K NBYK", 24, 40, 24),
        definition="blockdiagperm2dfissioned_1",
        terms=("NBYK",),
    ),
    Case(
        "permute_columns",
        "tc/examples/blockdiagperm.cc, blockdiagperm2dfissioned_2",
        _BLOCK_DIAGONAL,
        {"I": normal("B", "N"), "Idx": permutation("N")},
        lambda i, order: (np.take(i, order, axis=1),),
        at("B N", 128, 500),
        (at("B N", 7, 129), at("B N", 1, 1)),
        definition="blockdiagperm2dfissioned_2",
    ),
    Case(
        "block_diagonal_permuted",
        "tc/examples/blockdiagperm.cc, blockdiagperm2d (with integer subscripts)",
        _BLOCK_DIAGONAL,
        {
            "I": normal("B", "K", "NBYK"),
            "W": normal("K", "NBYK", "NBYK"),
            "IdxR": indices("K", "K", "NBYK"),
            "IdxC": indices("NBYK", "K", "NBYK"),
        },
        lambda i, w, rows, columns: (
            np.einsum("bki,kij->bkj", i, w),
            np.einsum("bki,kij->bkj", i, w)[:, rows, columns],
        ),
        at("B K NBYK", 128, 10, 50),
        (at("B K NBYK", 7, 3, 13),),
        even_sizes=at("B K NBYK", 24, 40, 24),
        definition="blockdiagperm2d",
        terms=("NBYK",),
    ),
    Case(
        "batch_triple_hadamard",
        "test/cuda/test_tc_mapper.cc, BatchTripleHadamard",
        """
        def batch_triple_hadamard(float(B, D) U, float(B, D) V, float(B, D) W) -> (Z) {
            Z(b, d) = U(b, d) * V(b, d) * W(b, d)
        }
        """,
        {"U": normal("B", "D"), "V": normal("B", "D"), "W": normal("B", "D")},
        lambda u, v, w: (u * v * w,),
        at("B D", 100, 1000),
        (at("B D", 1, 1), at("B D", 7, 129), at("B D", 0, 3)),
    ),
)
