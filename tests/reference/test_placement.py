"""Assignments to elements that several points choose, one of which is an instance."""

from __future__ import annotations

import numpy as np
import pytest

import tc

X = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize(
    ("text", "arrays", "expected"),
    [
        ("def f(float(N) x) -> (y) { y(i/3) = x(i) where i in 0:3, i == 2 }", (X[:, 0],), [4]),
        (
            "def f(float(N,M) x) -> (y) { y(i/3, j, k/2) = x(i,j) where i in 0:3, i % 3 == 1, j in 0:2, k in 0:1 }",
            (X,),
            [[[2], [3]]],
        ),
    ],
)
def test_conditions_choose_the_point(text: str, arrays: tuple[np.ndarray, ...], expected: object) -> None:
    f = tc.define(text).single()
    np.testing.assert_array_equal(f.reference(*arrays), expected)
    np.testing.assert_array_equal(f(*arrays), expected)
