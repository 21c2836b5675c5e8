"""Triangular reductions: cumulative sums, products and maxima, which are computed as scans."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, normal, uniform
from tests.comprehensions.formulas import Floats


def _logcumsumexp(x: Floats) -> tuple[Floats]:
    return (np.logaddexp.accumulate(x, 1),)


CASES = (
    Case(
        "cumulative_sum",
        "torch.cumsum along rows",
        "def cumulative_sum(float(M,N) x) -> (y) { y(m,i) +=! x(m,j) where i in 0:N, j in 0:i+1 }",
        {"x": normal("M", "N")},
        lambda x: (np.cumsum(x, 1),),
        at("M N", 256, 1024),
        (at("M N", 1, 1), at("M N", 7, 129), at("M N", 2, 300), at("M N", 3, 0)),
        terms=("N",),
    ),
    Case(
        "greatest_behind",
        "numpy.maximum.accumulate along columns, reversed and without the element itself",
        """
        def greatest_behind(float(M,N) x) -> (y, z) {
            y(i,n) max=! x(j,n) where i in 0:M, j in i+1:M
            z(i,n) = max(y(i,n), x(i,n))
        }
        """,
        {"x": normal("M", "N")},
        lambda x: (
            np.concatenate([np.maximum.accumulate(x[::-1])[::-1][1:], np.full((1, x.shape[1]), -np.inf)]),
            np.maximum.accumulate(x[::-1])[::-1],
        ),
        at("M N", 256, 1024),
        (at("M N", 1, 1), at("M N", 7, 13), at("M N", 129, 3)),
    ),
    Case(
        "logcumsumexp",
        "torch.logcumsumexp",
        """
        def logcumsumexp(float(M,N) x) -> (y) {
            t(m) max=! x(m,j)
            s(m,i) +=! exp(x(m,j) - t(m)) where i in 0:N, j in 0:i+1
            y(m,i) = log(s(m,i)) + t(m)
        }
        """,
        {"x": uniform(-2, 2, "M", "N")},
        _logcumsumexp,
        at("M N", 64, 512),
        (at("M N", 1, 1), at("M N", 7, 33)),
        terms=("N",),
    ),
)
