"""Ranges: what the examples and tests of range inference print."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, normal
from tests.comprehensions.formulas import Floats

_CHAIN_INPUTS = {
    "A": normal("A_0", "A_1", "A_2"),
    "B": normal("B_0", "B_1", "B_2"),
    "C": normal("C_0", "C_1", "C_2"),
}
_CHAIN_SIZES = "A_0 A_1 A_2 B_0 B_1 B_2 C_0 C_1 C_2"


def _common(*arrays: Floats) -> tuple[Floats, ...]:
    """The arrays cut to the extents that all of them have."""
    extents = np.min([array.shape for array in arrays], axis=0)
    return tuple(array[tuple(slice(n) for n in extents)] for array in arrays)


def _chain_of_two(a: Floats, b: Floats, c: Floats) -> tuple[Floats, ...]:
    planes, wide = np.minimum(a.shape[1:], b.shape[:2])
    second = a.shape[0] * b[:planes, :wide] + a.sum(axis=0)[:planes, :wide, None]
    return second, _third(second, c)


def _chain_of_three(a: Floats, b: Floats, c: Floats) -> tuple[Floats, ...]:
    first = a.sum(axis=2)
    planes = min(b.shape[0], a.shape[1])
    second = a.shape[0] * b[:planes] + first.sum(axis=0)[:planes, None, None]
    return first, second, _third(second, c)


def _third(second: Floats, c: Floats) -> Floats:
    rows, columns = np.minimum(c.shape[:2], second.shape[1:])
    total: Floats = second.shape[0] * c[:rows, :columns] + second.sum(axis=0)[:rows, :columns, None]
    return total


def _rotated(data: Floats) -> Floats:
    rows = np.arange(10)[:, None]
    columns = np.arange(min(11, data.shape[1] - 9))
    return data[10 + rows - columns, rows + columns]


CASES = (
    Case(
        "stencil_of_three",
        "docs/source/inference.rst, preconditions",
        "def f(float(I) B, float(L) C, float(J) D) -> (A) { A(i, j) = B(i) * C(i + j) * D(j) }",
        {"B": normal("I"), "C": normal("L"), "D": normal("J")},
        lambda b, c, d: (np.outer(b, d) * np.lib.stride_tricks.sliding_window_view(c, len(d))[: len(b)],),
        at("I J L", 32, 16, 47),
        (at("I J L", 1, 1, 1), at("I J L", 7, 13, 129)),
        even_sizes=at("I J L", 120, 120, 239),
    ),
    Case(
        "sum_along_diagonals",
        "test_inference.cc, TCA",
        "def fun(float(I_0, I_1, I_2) I) -> (O) { O(i) +=! I(j, i + j, k) }",
        {"I": normal("I_0", "I_1", "I_2")},
        lambda i: (np.array([np.trace(i.sum(axis=2), offset=k) for k in range(i.shape[1] - i.shape[0] + 1)]),),
        at("I_0 I_1 I_2", 8, 32, 16),
        (at("I_0 I_1 I_2", 1, 1, 1), at("I_0 I_1 I_2", 7, 13, 5), at("I_0 I_1 I_2", 3, 3, 129)),
        even_sizes=at("I_0 I_1 I_2", 24, 143, 24),
        terms=("I_0", "I_2"),
    ),
    Case(
        "sum_over_one_of_three_subscripts",
        "test_inference.cc, TCC (refused there: it needs I_1 >= I_0 + I_2 - 1)",
        "def fun(float(I_0, I_1, I_2) I) -> (O) { O(i) +=! I(i, i + j, j) }",
        {"I": normal("I_0", "I_1", "I_2")},
        lambda i: (np.array([np.trace(i[k, k : k + i.shape[2]]) for k in range(i.shape[0])]),),
        at("I_0 I_1 I_2", 8, 23, 16),
        (at("I_0 I_1 I_2", 1, 1, 1), at("I_0 I_1 I_2", 5, 13, 7)),
        even_sizes=at("I_0 I_1 I_2", 120, 239, 120),
        terms=("I_2",),
    ),
    Case(
        "sum_over_two_of_five_subscripts",
        "test_inference.cc, TCD (refused there: it needs a last dimension that is large enough)",
        "def fun(float(I_0, I_1, I_2, I_3, I_4) I) -> (O) { O(i) +=! I(i, j, i, k, 2 * i + j) }",
        {"I": normal("I_0", "I_1", "I_2", "I_3", "I_4")},
        lambda i: (
            np.array(
                [
                    np.trace(i[k, :, k].sum(axis=1)[:, 2 * k : 2 * k + i.shape[1]])
                    for k in range(min(i.shape[0], i.shape[2]))
                ]
            ),
        ),
        at("I_0 I_1 I_2 I_3 I_4", 4, 4, 4, 4, 16),
        (at("I_0 I_1 I_2 I_3 I_4", 3, 5, 2, 7, 7), at("I_0 I_1 I_2 I_3 I_4", 1, 1, 1, 1, 1)),
        even_sizes=at("I_0 I_1 I_2 I_3 I_4", 24, 12, 24, 4, 58),
        terms=("I_1", "I_3"),
    ),
    Case(
        "sum_over_shifted_subscripts",
        "test_inference.cc, TCE (refused there: it needs a last dimension that is large enough)",
        "def fun(float(I_0, I_1, I_2, I_3, I_4) I) -> (O) { O(i) +=! I(j, j + 1, i, i + 3, 2 * i + j + 0) }",
        {"I": normal("I_0", "I_1", "I_2", "I_3", "I_4")},
        lambda i: (
            np.array(
                [
                    np.einsum("jjj->", i[:, 1:, k, k + 3, 2 * k :][tuple([slice(min(i.shape[0], i.shape[1] - 1))] * 3)])
                    for k in range(min(i.shape[2], i.shape[3] - 3))
                ]
            ),
        ),
        at("I_0 I_1 I_2 I_3 I_4", 4, 5, 4, 7, 16),
        (at("I_0 I_1 I_2 I_3 I_4", 3, 5, 2, 7, 7), at("I_0 I_1 I_2 I_3 I_4", 5, 3, 7, 5, 5)),
        even_sizes=at("I_0 I_1 I_2 I_3 I_4", 8, 9, 24, 27, 54),
        terms=("I_0",),
    ),
    Case(
        "chain_of_two_sums",
        "test_inference.cc, TCF",
        """
        def fun(float(A_0, A_1, A_2) A,
                float(B_0, B_1, B_2) B,
                float(C_0, C_1, C_2) C) -> (O2, O3) {
          O2(j, k, l) +=! B(j, k, l) + A(i, j, k)
          O3(k, l, m) +=! C(k, l, m) + O2(j, k, l)
        }
        """,
        _CHAIN_INPUTS,
        _chain_of_two,
        at(_CHAIN_SIZES, 8, 8, 8, 8, 8, 8, 8, 8, 8),
        (at(_CHAIN_SIZES, 3, 7, 5, 6, 11, 4, 13, 2, 3), at(_CHAIN_SIZES, 2, 3, 7, 5, 4, 3, 3, 5, 2)),
        even_sizes=at(_CHAIN_SIZES, 24, 24, 40, 24, 40, 24, 40, 24, 8),
        terms=("A_0", "A_1"),
    ),
    Case(
        "chain_of_three_sums",
        "test_inference.cc, TCG",
        """
        def fun(float(A_0, A_1, A_2) A,
                float(B_0, B_1, B_2) B,
                float(C_0, C_1, C_2) C) -> (O1, O2, O3) {
          O1(i, j) +=! A(i, j, k)
          O2(j, k, l) +=! B(j, k, l) + O1(i, j)
          O3(k, l, m) +=! C(k, l, m) + O2(j, k, l)
        }
        """,
        _CHAIN_INPUTS,
        _chain_of_three,
        at(_CHAIN_SIZES, 8, 8, 8, 8, 8, 8, 8, 8, 8),
        (at(_CHAIN_SIZES, 3, 7, 5, 6, 11, 4, 13, 2, 3), at(_CHAIN_SIZES, 2, 3, 7, 5, 4, 3, 3, 5, 2)),
        even_sizes=at(_CHAIN_SIZES, 24, 24, 40, 24, 40, 24, 40, 24, 8),
        terms=("A_0", "A_1", "A_2"),
    ),
    Case(
        "three_subscripts_of_fixed_sizes",
        "test_inference.cc, RuntimeCheckOnDerivedSizeStaticallyProvable",
        "def fun(float(10, 19, 10) I) -> (O) { O(i, j) = I(i, i + j, j) }",
        {"I": normal(10, 19, 10)},
        lambda i: (i[np.arange(10)[:, None], np.add.outer(np.arange(10), np.arange(10)), np.arange(10)],),
        {},
        (),
    ),
    Case(
        "three_subscripts",
        "test_inference.cc, RuntimeCheckOnDerivedSize (refused there: it needs NM >= N + M - 1)",
        "def fun(float(N, NM, M) I) -> (O) { O(i, j) = I(i, i + j, j) }",
        {"I": normal("N", "NM", "M")},
        lambda i: (
            i[
                np.arange(i.shape[0])[:, None],
                np.add.outer(np.arange(i.shape[0]), np.arange(i.shape[2])),
                np.arange(i.shape[2]),
            ],
        ),
        at("N NM M", 16, 47, 32),
        (at("N NM M", 1, 1, 1), at("N NM M", 7, 129, 13)),
        even_sizes=at("N NM M", 120, 239, 120),
    ),
    Case(
        "rotation",
        "test_inference.cc, UnambiguousRotate",
        "def fun(float(N, M) I) -> (O) { O(i, j) = I(10 + i - j, i + j) where i in 0:10 }",
        {"I": normal("N", "M")},
        lambda i: (_rotated(i),),
        at("N M", 20, 20),
        (at("N M", 23, 13), at("N M", 20, 129)),
    ),
    Case(
        "reversed_from_ten",
        "docs/source/inference.rst, inverted indexing",
        "def reverted(float(I) B) -> (A) { A(i) = B(10 - i) }",
        {"B": normal("I")},
        lambda b: (b[10::-1],),
        at("I", 11),
        (at("I", 129),),
    ),
    Case(
        "smaller_of_two",
        "bounds of one round intersect",
        "def f(float(M) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }",
        {"A": normal("M"), "B": normal("N")},
        lambda a, b: (np.add(*_common(a, b)),),
        at("M N", 64, 48),
        (at("M N", 7, 129), at("M N", 129, 7), at("M N", 0, 1)),
    ),
)
