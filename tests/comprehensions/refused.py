"""Comprehensions that are printed in the paper or in the public implementation and that mean nothing here."""

from __future__ import annotations

from dataclasses import dataclass

import tc


@dataclass(frozen=True, slots=True)
class Refused:
    """A text, where it is printed, and how it is refused: the kind of error and words of its message."""

    name: str
    source: str
    text: str
    error: type[tc.TCError]
    words: str


@dataclass(frozen=True, slots=True)
class Unfit:
    """A text that is defined for some sizes only: shapes of float arguments for which it leaves a tensor."""

    name: str
    source: str
    text: str
    shapes: tuple[tuple[int, ...], ...]
    words: str


UNFIT = (
    Unfit(
        "stencil_of_three",
        "docs/source/inference.rst, preconditions",
        "def f(float(I) B, float(L) C, float(J) D) -> (A) { A(i, j) = B(i) * C(i + j) * D(j) }",
        ((5,), (7,), (4,)),
        "`C(i + j)` leaves `C` at i = 4, j = 3",
    ),
    Unfit(
        "three_subscripts",
        "test_inference.cc, RuntimeCheckOnDerivedSize",
        "def fun(float(N, NM, M) I) -> (O) { O(i, j) = I(i, i + j, j) }",
        ((4, 6, 4),),
        "dimension 1 has 6 elements",
    ),
    Unfit(
        "sum_over_two_subscripts",
        "test_inference.cc, TCD",
        "def fun(float(I_0, I_1, I_2, I_3, I_4) I) -> (O) { O(i) +=! I(i, j, i, k, 2 * i + j) }",
        ((3, 5, 2, 7, 6),),
        "dimension 4 has 6 elements",
    ),
    Unfit(
        "reversed_from_ten",
        "docs/source/inference.rst, inverted indexing",
        "def reverted(float(I) B) -> (A) { A(i) = B(10 - i) }",
        ((10,),),
        "`B(10 - i)` leaves `B` at i = 0",
    ),
    Unfit(
        "gradient_without_guards",
        "test_inference.cc, ConvGrad; python/tests/test_tc.py, convolution_grad",
        """
        def convolutionGrad(float(N,C,H,W) I, float(M,C,KH,KW) W1, float(N,M,OH,OW) d_O) -> (d_I, d_W1, d_B) {
          d_I(n, c, h, w) +=! d_O(n, m, h - kh, w - kw) * W1(m, c, kh, kw)
          d_W1(m, c, kh, kw) +=! d_O(n, m, h - kh, w - kw) * I(n, c, h, w)
          d_B(m) +=! d_O(n, m, h, w)
        }
        """,
        ((2, 3, 7, 8), (4, 3, 3, 3), (2, 4, 5, 6)),
        "`d_O(n, m, h - kh, w - kw)` leaves `d_O` at n = 0, c = 0, h = 0, w = 0, m = 0, kh = 1, kw = 0",
    ),
    Unfit(
        "strided_gradient_without_guards",
        "layers.yaml and layers_database.rst, convolution_strided grad",
        """
        def convolution_grad(float(N, C, H, W) I, float(M, C, KH, KW) W1, float(N, M, H, W) O_grad)
        -> (I_grad, W1_grad) {
            I_grad(n, c, h, w) +=! O_grad(n, m, 2 * h - kh, 2 * w - kw) * W1(m, c, kh, kw)
            W1_grad(m, c, kh, kw) +=! O_grad(n, m, 2 * h - kh, 2 * w - kw) * I(n, c, h, w)
        }
        """,
        ((2, 3, 7, 8), (4, 3, 3, 3), (2, 4, 7, 8)),
        "`O_grad(n, m, 2 * h - kh, 2 * w - kw)` leaves `O_grad`",
    ),
    Unfit(
        "part_of_a_copy",
        "test_inference.cc, PartialCopy",
        "def fun(float(N, M) I) -> (O) { O(i, j) = I(i, j) where i in 3:N-1 }",
        ((7, 2),),
        "`O(0, 0)` is never written",
    ),
    Unfit(
        "range_of_products_of_sizes",
        "test_corner_cases.cc, E14 (disabled there)",
        "def f(float(N) b) -> (c) { c(i) += b(i + j) where j in 0:(N*N), i in 0:10 }",
        ((12,),),
        "`b(i + j)` leaves `b` at i = 0, j = 12",
    ),
)

REFUSED = (
    Refused(
        "reduction_without_operator",
        "paper, Section 3.1 (conv1d)",
        "def conv1d(float(M) I, float(N) K) -> (O) { O(i) = K(x) * I(i + x) }",
        tc.SemanticError,
        "reduc",
    ),
    Refused(
        "sum_without_operator",
        "test_lang.cc",
        "def fun(float(M,N) A) -> (O) { O(i) = A(i,j) }",
        tc.SemanticError,
        "reduc",
    ),
    Refused(
        "transposition_in_place",
        "paper, Section 2 (a(i,j) = a(j,i))",
        "def f(float(N,N) b) -> (a) { a(i,j) = b(i,j) a(i,j) = a(j,i) }",
        tc.SemanticError,
        "an update in place must read `a` with the subscripts that it writes",
    ),
    Refused(
        "bias_with_an_index_of_its_own",
        "paper, Section 7 (gconv)",
        """
        def gconv(float(N,G,C,H,W) I,float(G,F,C,KH,KW) W1,
                  float(M) B) -> (O) {
            O(n,g,o,h,w) +=! I(n,g,i, h + kh, w + kw)
                * W1(g,o,i,kh,kw)
            O(n,g,o,h,w) = O(n,g,o,h,w) + B(m)
        }
        """,
        tc.SemanticError,
        "m",
    ),
    Refused(
        "index_on_the_left_only",
        "test_inference.cc, Transpose5D",
        "def fun(float(I_0, I_1, I_2, I_3, I_4) I) -> (O) { O(i, j, k, l, m) = I(j, i, k, i, l) }",
        tc.RangeError,
        "m",
    ),
    Refused(
        "index_that_nothing_bounds",
        "test_inference.cc, PartialAssignWithoutWhere",
        "def fun() -> (O) { O(i, j) = 3 }",
        tc.RangeError,
        "where",
    ),
    Refused(
        "three_ambiguous_subscripts",
        "test_inference.cc, TCB",
        "def fun(float(I_0, I_1, I_2) A) -> (O) { O(i) +=! A(i + j, i + j, i + j) }",
        tc.RangeError,
        "where",
    ),
    Refused(
        "ambiguous_rotation",
        "test_inference.cc, AmbiguousRotate",
        "def fun(float(N, M) I) -> (O) { O(i, j) = I(10 + i - j, i + j) }",
        tc.RangeError,
        "where",
    ),
    Refused(
        "start_above_zero",
        "test_inference.cc, Shift1D",
        "def fun(float(I_0) I) -> (O) { O(i) = I(i - 1) }",
        tc.RangeError,
        "0",
    ),
    Refused(
        "stencil_that_starts_above_zero",
        "docs/source/inference.rst, first stencil",
        "def f(float(N) B, float(N) C) -> (A) { A(i) = B(i) + C(i-2) }",
        tc.RangeError,
        "0",
    ),
    Refused(
        "padding_by_shifting",
        "test_inference.cc, PaddedConv",
        """
        def convolution(float(N,C,H,W) I, float(M,C,KH,KW) W1, float(M) B)
        -> (pad, tmp)
        {
          pad(n, c, h, w)  = I(n, c, h - 2 - 3, w - 3 - 4)
          tmp(n, m, h, w) +=! pad(n, c, 2 * h + kh, 3 * w + kw) * W1(m, c, kh, kw)
        }
        """,
        tc.RangeError,
        "0",
    ),
    Refused(
        "part_of_a_constant",
        "test_inference.cc, PartialAssignWithWhere",
        "def fun() -> (O) { O(i, j) = 3 where i in 4:8, j in 3:20 }",
        tc.RangeError,
        "4",
    ),
    Refused(
        "range_that_is_empty",
        "test_inference.cc, EmptySetWhere",
        "def fun() -> (O) { O(i, j) = 3 where i in 8:4, j in 3:20 }",
        tc.RangeError,
        "8:4",
    ),
    Refused(
        "range_from_a_tensor",
        "test_inference.cc, IndirectWhere (disabled there)",
        "def fun(float(TWO) size) -> (O) { O(i, j) = 3 where i in 0:size(0), j in 0:size(1) }",
        tc.SemanticError,
        "size",
    ),
    Refused(
        "ranges_from_each_other",
        "test_inference.cc, IllegalIndirectWhere",
        "def fun(float(N) size) -> (O) { O(i, j) = 3 where i in 0:size(j), j in 0:size(i) }",
        tc.SemanticError,
        "size",
    ),
    Refused(
        "written_input",
        "test_tc2halide.cc, MutableInput",
        "def foo(float(N) A) -> (B) { A(i) = A(i) + 42 B(k) +=! A(i) where k in 0:1 }",
        tc.SemanticError,
        "A",
    ),
    Refused(
        "fractional_subscript",
        "test_corner_cases.cc, E11",
        "def f(int32(N) a) -> (b) { b(i) = a(i + .5) }",
        tc.SemanticError,
        "integer",
    ),
    Refused(
        "range_of_a_let",
        "test_corner_cases.cc, E19",
        "def f(float(1) a) -> (b) { b(i) = 2*foo where foo = a(i), foo in 1:2 }",
        tc.SemanticError,
        "foo",
    ),
    Refused("no_parameters", "test_corner_cases.cc, E1", " def f{} {}", tc.ParseError, "expected `(`"),
    Refused(
        "results_without_parentheses",
        "docs/source/inference.rst, lut",
        "def lut(float(J) B, int(I) C) -> A { A(i) = B(C(i)) }",
        tc.ParseError,
        "the results stand in parentheses",
    ),
    Refused(
        "floating_subscript_of_a_gather",
        "docs/source/inference.rst, lut",
        "def lut(float(J) B, float(I) C) -> (A) { A(i) = B(C(i)) }",
        tc.SemanticError,
        "integer",
    ),
    Refused(
        "intervals_in_brackets",
        "test_python/test_scalar_tc.py, test_avgpool_option2",
        """
        def avgpool(float(B, C, H, W) input) -> (output) {
            output(b, c, h, w) += input(b, c, h * 1 + kh, w * 1 + kw) where kh = [0, 2[, kw = [0, 2[
        }
        """,
        tc.ParseError,
        "expected an expression",
    ),
    Refused(
        "scatter",
        "test_core.cc, MayWritesOnly (disabled there)",
        "def scatter(int32(N) A, int32(M) B) -> (O) { O(A(i)) = B(i) }",
        tc.SemanticError,
        "O",
    ),
    Refused(
        "permutation_on_the_left",
        "tc/examples/blockdiagperm.cc, blockdiagperm2dinlined",
        """
        def blockdiagperm2dinlined(float(B, K, NBYK) I, float(K, NBYK, NBYK) W, int32(K, NBYK) IdxR,
                                   int32(K, NBYK) IdxC) -> (O1) {
            O1(b, IdxR(k, nbyk0), IdxC(k, nbyk0)) +=! I(b, k, r_nbyk0) * W(k, r_nbyk0, nbyk1)
        }
        """,
        tc.SemanticError,
        "O1",
    ),
    Refused(
        "negative_subscript_on_the_left",
        "test_core.cc, Computed",
        "def gather(int32(N) A, int32(N) B) -> (O) { O(i - 2) = A(i) + B(i) }",
        tc.RangeError,
        "O",
    ),
    Refused(
        "stride_from_a_tensor",
        "docs/source/inference.rst, strided indexing with dynamic stride",
        "def subsample_2(float(I) B, int(1) S) -> (A) { A(i) = B(S(0)*i) }",
        tc.RangeError,
        "where",
    ),
    Refused(
        "undefined_gradient",
        "layers_database.rst, matmul_grad",
        """
        def matmul_grad(float(M, N) A, float(N, K) B) -> (output) {
            A_grad(i, j) +=! O_grad(i, kk) * B(j, kk)
            B_grad(i, j) +=! O_grad(kk, j) * A(kk, i)
        }
        """,
        tc.SemanticError,
        "O_grad",
    ),
    Refused(
        "groups_by_division",
        "paper, appendix A.4.3 (dconv: 'this semantics is ill-advised')",
        """
        def dconv(float(N,F,H,W) I, float(F,GCI,KH,KW) W1, float(M) B) -> (O) {
            O(n,o,h,w) +=! I(n,gci, h + kh, w + kw) *
                W1(gci % grp, o / grp, gci / grp, kh, kw)
            O(n,o,h,w) = O(n,o,h,w) + B(m)
        }
        """,
        tc.SemanticError,
        "W1",
    ),
)
