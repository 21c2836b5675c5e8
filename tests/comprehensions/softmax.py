"""Softmax in its printed variants, and similarities."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, normal, uniform
from tests.comprehensions.formulas import Floats, log_softmax, softmax

_ROWS = (at("N D", 1, 1), at("N D", 7, 129), at("N D", 0, 5))


def _similarity_of_the_library(first: Floats, second: Floats, epsilon: float) -> tuple[Floats, ...]:
    first_norm, second_norm = (np.square(x).sum(axis=1) for x in (first, second))
    return (
        np.einsum("mn,mn->m", first, second) / np.maximum(np.sqrt(second_norm / first_norm), epsilon),
        first_norm,
        second_norm,
    )


CASES = (
    Case(
        "softmax",
        "a stable softmax with temporaries that are not outputs",
        """
        def softmax(float(N, D) I) -> (O) {
            maxVal(n) max=! I(n, d)
            expDistance(n, d) = exp(I(n, d) - maxVal(n))
            expSum(n) +=! expDistance(n, d)
            O(n, d) = expDistance(n, d) / expSum(n)
        }
        """,
        {"I": normal("N", "D")},
        lambda data: (softmax(data),),
        at("N D", 32, 16),
        _ROWS,
        terms=("D",),
    ),
    Case(
        "softmax_with_all_results",
        "layers_database.rst, softmax; test_compile_and_run.cc, SoftmaxD; frequently_asked_questions.rst",
        """
        def softmax(float(N, D) I) -> (O, maxVal, expDistance, expSum) {
            maxVal(n) max=! I(n, d)
            expDistance(n, d) = exp(I(n, d) - maxVal(n))
            expSum(n) +=! expDistance(n, d)
            O(n, d) = expDistance(n, d) / expSum(n)
        }
        """,
        {"I": normal("N", "D")},
        lambda data: (
            softmax(data),
            data.max(axis=1),
            np.exp(data - data.max(axis=1, keepdims=True)),
            1 / softmax(data).max(axis=1),
        ),
        at("N D", 32, 16),
        _ROWS[:2],
        terms=("D",),
    ),
    Case(
        "softmax_recomputed",
        "test_compile_and_run.cc, SoftmaxC; frequently_asked_questions.rst",
        """
        def softmax(float(N, D) I) -> (O, expsum, maxVal) {
            maxVal(n) max=!     I(n, d)
            expsum(n)   +=! exp(I(n, d) - maxVal(n))
                 O(n, d) =  exp(I(n, d) - maxVal(n)) / expsum(n)
        }
        """,
        {"I": normal("N", "D")},
        lambda data: (softmax(data), 1 / softmax(data).max(axis=1), data.max(axis=1)),
        at("N D", 32, 16),
        _ROWS[:2],
        terms=("D",),
    ),
    Case(
        "softmax_of_the_library",
        "layers.yaml, softmax (max= continues from the values passed in, and the division forgets the maximum)",
        """
        def softmax(float(N, D) I) -> (O, expsum, maxVal) {
          maxVal(n) max= I(n, d)
          expsum(n) +=! exp(I(n, d) - maxVal(n))
          O(n, d) = exp(I(n, d)) / expsum(n)
        }
        """,
        {"I": normal("N", "D")},
        lambda data, low: (
            np.exp(data) / np.exp(data - np.maximum(low, data.max(axis=1))[:, None]).sum(axis=1, keepdims=True),
            np.exp(data - np.maximum(low, data.max(axis=1))[:, None]).sum(axis=1),
            np.maximum(low, data.max(axis=1)),
        ),
        at("N D", 32, 16),
        (at("N D", 7, 129),),
        in_out={"maxVal": uniform(0, 2, "N")},
        terms=("D",),
    ),
    Case(
        "softmax_reusing_a_name",
        "frequently_asked_questions.rst ('invalid' there: one name holds the maximum and then the sum)",
        """
        def softmax(float(N, D) I) -> (O, tmp) {
            tmp(n) max=! I(n, d)
            O(n, d) = exp(I(n, d) - tmp(n))
            tmp(n) +=! O(n, d)
            O(n, d) = O(n, d) / tmp(n)
        }
        """,
        {"I": normal("N", "D")},
        lambda data: (softmax(data), 1 / softmax(data).max(axis=1)),
        at("N D", 32, 16),
        _ROWS[:2],
        terms=("D",),
    ),
    Case(
        "softmax_reusing_a_name_that_comes_in",
        "test_compile_and_run.cc, SoftmaxA (disabled there)",
        """
        def softmax(float(N, D) I) -> (O, tmp) {
            tmp(n) max=     I(n, d)
              O(n, d) = exp(I(n, d) - tmp(n))
            tmp(n)   +=!    O(n, d)
              O(n, d) =     O(n, d) / tmp(n)
        }
        """,
        {"I": normal("N", "D")},
        lambda data, low: (
            softmax(data),
            np.exp(data - np.maximum(low, data.max(axis=1))[:, None]).sum(axis=1),
        ),
        at("N D", 32, 16),
        (at("N D", 7, 129),),
        in_out={"tmp": uniform(0, 2, "N")},
        terms=("D",),
    ),
    Case(
        "softmax_without_maximum",
        "docs/source/ml_with_tc.rst",
        """
        def softmax(float(N, D) I) -> (O, expsum) {
          expsum(n) +=! exp(I(n, d))
          O(n, d) = exp(I(n, d)) / expsum(n)
        }
        """,
        {"I": normal("N", "D")},
        lambda data: (softmax(data), np.exp(data).sum(axis=1)),
        at("N D", 32, 16),
        (at("N D", 7, 129),),
        terms=("D",),
    ),
    Case(
        "log_softmax",
        "the logarithm of a softmax, with temporaries",
        """
        def log_softmax(float(N, D) I) -> (O) {
            m(n) max=! I(n, d)
            s(n) +=! exp(I(n, d) - m(n))
            O(n, d) = I(n, d) - m(n) - log(s(n))
        }
        """,
        {"I": normal("N", "D")},
        lambda data: (log_softmax(data),),
        at("N D", 32, 16),
        _ROWS,
        terms=("D",),
    ),
    Case(
        "cosine_similarity_of_the_library",
        "layers.yaml, cosine_similarity, with eps 1e-5 (as it is printed)",
        """
        def cosine_similarity(float(M, N) I1, float(M, N) I2) -> (O, sumI1, sumI2) {
          sumI1(m) +=! I1(m, n) * I1(m, n)
          sumI2(m) +=! I2(m, n) * I2(m, n)
          O(m) +=! (I1(m, n) * I2(m, n)) / fmax(rsqrt(sumI1(m)) * sqrt(sumI2(m)), 1e-5)
        }
        """,
        {"I1": normal("M", "N"), "I2": normal("M", "N")},
        lambda first, second: _similarity_of_the_library(first, second, 1e-5),
        at("M N", 100, 128),
        (at("M N", 1, 1), at("M N", 7, 129)),
        terms=("N",),
    ),
    Case(
        "cosine_similarity",
        "cosine similarity with temporaries that are not outputs",
        """
        def cosine_similarity(float(M, N) I1, float(M, N) I2) -> (O) {
          dot(m) +=! I1(m, n) * I2(m, n)
          s1(m) +=! I1(m, n) * I1(m, n)
          s2(m) +=! I2(m, n) * I2(m, n)
          O(m) = dot(m) / fmax(sqrt(s1(m)) * sqrt(s2(m)), 1e-6)
        }
        """,
        {"I1": normal("M", "N"), "I2": normal("M", "N")},
        lambda first, second: (
            np.einsum("mn,mn->m", first, second) / (np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)),
        ),
        at("M N", 100, 128),
        (at("M N", 7, 129),),
        terms=("N",),
    ),
)
