"""What ``compare`` accepts and how it tells."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.reference.compare import compare
from tc.reference.evaluate import Result

INF, NAN = float("inf"), float("nan")


def floats(values: list[float], error: list[float], type: ScalarType = ScalarType.FLOAT32) -> Result:
    return Result(type, np.array(values), np.array(error), np.zeros(len(values), np.bool_))


def test_the_worst_ratio_and_the_first_mismatch() -> None:
    result = floats([1.0, 2.0, 4.0], [0.5, 0.5, 0.5])
    good = compare(result, np.array([1.25, 2.0, 4.0], np.float32))
    assert (good.ok, good.worst, good.largest, good.first) == (True, 0.5, 0.25, None)
    assert str(good) == "within the bound: worst 0.5 of it, 0 % ambiguous"
    bad = compare(result, np.array([1.0, 3.0, 8.0], np.float32))
    assert (bad.ok, bad.worst, bad.largest) == (False, 8.0, 4.0)
    assert str(bad) == "outside the bound, 8 times it; first at (1): expected 2.0, got 3.0, which may differ by 0.5"


def test_nan_meets_nan_only() -> None:
    result = floats([NAN, 1.0], [0.0, 0.5])
    assert compare(result, np.array([NAN, 1.0], np.float32)).ok
    assert not compare(result, np.array([1.0, 1.0], np.float32)).ok
    assert not compare(result, np.array([NAN, NAN], np.float32)).ok


def test_infinities_meet_their_own_sign() -> None:
    result = floats([INF, -INF, 1.0], [0.0, 0.0, 0.5])
    assert compare(result, np.array([INF, -INF, 1.0], np.float32)).ok
    for wrong in ([-INF, -INF, 1.0], [3e38, -INF, 1.0], [INF, -INF, INF], [NAN, -INF, 1.0]):
        assert not compare(result, np.array(wrong, np.float32)).ok


def test_infinity_is_accepted_where_the_bound_rounds_to_it() -> None:
    result = floats([65500.0, -65500.0, 65000.0], [30.0, 30.0, 30.0], ScalarType.FLOAT16)
    assert compare(result, np.array([INF, -INF, 65000], np.float16)).ok
    assert not compare(result, np.array([-INF, -INF, 65000], np.float16)).ok
    assert not compare(result, np.array([INF, -INF, INF], np.float16)).ok


def test_an_unknown_element_accepts_anything_and_counts_as_ambiguous() -> None:
    result = Result(ScalarType.FLOAT32, np.array([1.0, 2.0]), np.array([INF, 0.1]), np.array([True, False]))
    found = compare(result, np.array([NAN, 2.0], np.float32))
    assert (found.ok, found.ambiguous) == (True, 0.5)


def test_integers_must_be_equal_beyond_float64() -> None:
    result = Result(ScalarType.INT64, np.array([2**62]), np.zeros(1), np.zeros(1, np.bool_))
    assert compare(result, np.array([2**62])).ok
    assert str(compare(result, np.array([2**62 + 1])).first) == (
        f"at (0): expected {2**62}, got {2**62 + 1}, which may differ by 0"
    )


def test_bfloat16_is_compared_as_it_is() -> None:
    result = floats([1.0, 3.0], [0.01, 0.01], ScalarType.BFLOAT16)
    assert compare(result, np.array([1.0, 3.0], ml_dtypes.bfloat16)).ok
    assert not compare(result, np.array([1.0, 3.1], ml_dtypes.bfloat16)).ok


def test_empty_results_agree() -> None:
    found = compare(floats([], []), np.zeros(0, np.float32))
    assert (found.ok, found.worst, found.ambiguous) == (True, 0.0, 0.0)


def test_shape_and_type_must_be_the_results() -> None:
    result = floats([1.0], [0.0])
    message = r"cannot compare float64 of shape \(1,\) with a result of type float32 and shape \(1,\)"
    with pytest.raises(ArgumentError, match=message):
        compare(result, np.array([1.0]))
    with pytest.raises(ArgumentError, match=r"shape \(1, 1\)"):
        compare(result, np.array([[1.0]], np.float32))
