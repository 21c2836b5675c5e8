"""Products with bands: what is used of a tile lies along a diagonal."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, normal
from tests.comprehensions.formulas import Floats


def band(matrices: Floats, width: int, step: int = 1) -> Floats:
    """The elements ``(i, k)`` with ``0 <= k - step * i < width``, and zeros elsewhere."""
    rows, columns = np.indices(matrices.shape[-2:])
    apart = columns - step * rows
    return matrices * ((apart >= 0) & (apart < width))


CASES = (
    Case(
        "banded_product",
        "affine conditions: the product with a diagonal and the one above it",
        """
        def banded(float(N,N) A, float(N,M) B) -> (C) {
            C(i,j) +=! A(i,k) * B(k,j) where i in 0:N, k in 0:N, k - i in 0:2
        }
        """,
        {"A": normal("N", "N"), "B": normal("N", "M")},
        lambda a, b: (band(a, 2) @ b,),
        at("N M", 64, 48),
        (at("N M", 1, 1), at("N M", 33, 16), at("N M", 0, 5)),
    ),
    Case(
        "batched_bands",
        "affine conditions: bands of several matrices",
        """
        def bands(float(P,N,N) A, float(P,N,M) B) -> (C) {
            C(p,i,j) +=! A(p,i,k) * B(p,k,j) where i in 0:N, k in 0:N, k - i in 0:4
        }
        """,
        {"A": normal("P", "N", "N"), "B": normal("P", "N", "M")},
        lambda a, b: (band(a, 4) @ b,),
        at("P N M", 8, 64, 48),
        (at("P N M", 1, 1, 1), at("P N M", 3, 20, 9), at("P N M", 2, 0, 5)),
    ),
    Case(
        "stretched_band",
        "affine conditions: every row begins two columns behind the one before",
        """
        def stretched(float(M,N) A, float(N,L) B) -> (C) {
            C(i,j) +=! A(i,k) * B(k,j) where i in 0:M, k in 0:N, k - 2 * i in 0:5
        }
        """,
        {"A": normal("M", "N"), "B": normal("N", "L")},
        lambda a, b: (band(a, 5, 2) @ b,),
        at("M N L", 32, 64, 48),
        (at("M N L", 1, 1, 1), at("M N L", 16, 31, 12), at("M N L", 0, 3, 5)),
    ),
    Case(
        "band_of_a_temporary",
        "affine conditions: the band of what was computed before",
        """
        def scaled(float(N,N) A, float(N) s, float(N,M) B) -> (C) {
            T(i,k) = A(i,k) * s(i)
            C(i,j) +=! T(i,k) * B(k,j) where i in 0:N, k in 0:N, k - i in 0:2
        }
        """,
        {"A": normal("N", "N"), "s": normal("N"), "B": normal("N", "M")},
        lambda a, s, b: (band(a * s[:, None], 2) @ b,),
        at("N M", 64, 48),
        (at("N M", 1, 1), at("N M", 17, 5), at("N M", 0, 5)),
    ),
)
