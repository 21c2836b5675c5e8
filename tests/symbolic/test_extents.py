"""Extents and divisors that are not linear in an open size."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.base.json_records import from_json, to_json
from tc.language.program.extent import Extent
from tests.turns import one_in

QUASI_AFFINE: dict[str, tuple[str, ...]] = {
    "minima and maxima": (
        "y(i) = x(i) where i in 0:min(N,4)",
        "y(i) = i < N ? x(i) : 0 where i in 0:max(N,4)",
        "y(i) = x(i) where i in 0:min(N, max(2, N/3))",
        "y(i) = x(i) where i in 0:(N < 4 ? N : 7 - N/3), i < N",
        "y(min(i,3)) +=! x(i)",
    ),
    "quotients and remainders": (
        "y(i) = x(i) where i in 0:N-N/3",
        "y(i) = x(i) where i in 0:N%4",
        "y(i) = x(i) where i in 0:min(N,4)/2",
        "y(i%4) max=! x(i)",
        "y(i/2 + i%2) +=! x(i)",
    ),
    "ranges that may be empty": (
        "y(i) +=! x(i + k) where i in 0:N-2, k in 0:3",
        "y(i) = x(i + 3) where i in 0:N-3",
        "t(i) = x(i) where i in 0:min(N,4)  y +=! t(i)",
        "y(i/2) +=! x(i) where i in 1:N",
        "y((i+j)/3) max=! x(i) where i in 2:N, j in 0:N",
        "y(i%1) +=! x(i) where i in 1:N",
        "y(i%(2-1), j) max=! x(i) where i in 3:N, j in 0:2",
    ),
    "divisors that stay open": (
        "y(i) = x((i+1)%N) where i in 0:N",
        "y(i) +=! x((i+j)%N) where i in 0:N, j in 0:3",
        "y(i) = x((2*i+N-1)%N) + i/N where i in 0:N",
        "y((i+N-1)%N) = x(i)",
        "y(i%N) +=! x(i)",
        "y(i/N) +=! x(i)",
        "y(i) = i%N < 2 ? x(i) : x((i-2)%N) where i in 0:N",
        "y(i) = x(N-1 + (i-N)%N) where i in 1:2, i < N  y(0) = x(0)",
    ),
}


@one_in(3)
@pytest.mark.parametrize("target", ["cpu", "emulator"])
@pytest.mark.parametrize("kind", QUASI_AFFINE)
def test_extents_and_divisors_that_are_not_linear(kind: str, target: str) -> None:
    """All statements of a kind in one kernel, whose extents calls compute."""
    names = [f"y{number}" for number in range(len(QUASI_AFFINE[kind]))]
    statements = [
        re.sub(r"\bt\(", f"t{name}(", re.sub(r"\by\b", name, text))
        for name, text in zip(names, QUASI_AFFINE[kind], strict=True)
    ]
    f = tc.define(f"def f(float(N) x) -> ({', '.join(names)}) {{ {'  '.join(statements)} }}").f
    kernel = f.compile((tc.dynamic(9),), target=target)
    for size in (1, 2, 3, 5, 8, 9):
        x = np.random.default_rng(size).integers(-9, 9, size).astype(np.float32)
        found, expected = kernel(x), f.reference(x)
        assert isinstance(found, tuple)
        assert isinstance(expected, tuple)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_extents_are_kept_as_text() -> None:
    """Whatever they consist of."""
    f = tc.define("def f(float(N) x) -> (y) { y(i) = x(i) where i in 0:(N < 4 ? N : 7 - N/3), i < N }").f
    extent = f.specialize((tc.dynamic(9),)).layouts["y"].extents[0]
    assert extent is not None
    assert from_json(Extent, to_json(extent)) == extent
    assert [extent.at((size,)) for size in range(1, 10)] == [1, 2, 3, 4, 5, 5, 5, 5, 4]


def test_quotients_that_are_exact_in_a_piece() -> None:
    """isl writes them as fractions there: of ``t.0 = N - 2 (M - 1)``, for one, whose half is 0 at ``2 M = N + 4``."""
    f = tc.define(
        "def f(float(N) x, float(M) w) -> (y) {"
        "  t(m) +=! x(m + 2 * j) * w(j)"
        "  y(j) +=! t(i) where j in 0:(t.0 + 1) / 2 }"
    ).f
    kernel = f.compile((tc.dynamic(11),), (tc.dynamic(18),))
    for n, m in ((1, 1), (8, 4), (9, 4), (11, 3), (11, 5)):
        x, w = (np.arange(size, dtype=np.float32) for size in (n, m))
        np.testing.assert_array_equal(kernel(x, w), f.reference(x, w))


def test_even_and_odd_rows_are_all_rows() -> None:
    """The last of each depends on how many rows there are, the last of both does not."""
    f = tc.define(
        "def f(float(M,N) x) -> (y) {"
        "  y(i,j) = x(i,j) where i % 2 == 0, i in 0:min(M,N)"
        "  y(i,j) = -x(i,j) where i % 2 != 0, i in 0:min(M,N) }"
    ).f
    extent = f.specialize((tc.dynamic(7), tc.dynamic(104))).layouts["y"].extents[0]
    assert extent is not None
    assert [[extent.at((m, n)) for n in (1, 2, 9)] for m in (1, 2, 7)] == [[1, 1, 1], [1, 2, 2], [1, 2, 7]]
    assert "divisor=2" not in repr(extent)
