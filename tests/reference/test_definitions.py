"""Values of the functions, where definitions are easily mistaken."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tests.reference.build import call, pointwise

INF, NAN = math.inf, math.nan
CASES: list[tuple[str, list[float], float]] = [
    *(("round", [x], y) for x, y in ((0.5, 1), (1.5, 2), (2.5, 3), (-0.5, -1), (-2.5, -3), (0.49999997, 0))),
    *(("trunc", [x], y) for x, y in ((1.9, 1), (-1.9, -1), (-INF, -INF))),
    *(("logb", [x], y) for x, y in ((1, 0), (0.75, -1), (1024, 10), (-8, 3), (1e-45, -149), (0, -INF), (-INF, INF))),
    *(("fdim", [x, y], z) for x, y, z in ((3, 1, 2), (1, 3, 0), (INF, INF, 0), (INF, 1, INF), (NAN, 1, NAN))),
    *(("fmod", [x, y], z) for x, y, z in ((5, 3, 2), (-5, 3, -2), (5, -3, 2), (1, 0, NAN), (1, INF, 1), (INF, 1, NAN))),
    *(("copysign", [x, y], z) for x, y, z in ((3, -1, -3), (-3, 2, 3), (INF, -0.0, -INF))),
    *(("remainder", [x, y], z) for x, y, z in ((5, 3, -1), (3, 2, -1), (-5, 3, 1), (7, INF, 7), (1, 0, NAN))),
    *(("fmax", [x, y], z) for x, y, z in ((NAN, 1, 1), (1, NAN, 1), (NAN, NAN, NAN))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "value"), CASES)
def test_values(name: str, operands: list[float], value: float) -> None:
    result = pointwise(lambda *x: call(name, *x), *(np.array([x], np.float32) for x in operands))
    np.testing.assert_array_equal(result.values, np.array([value], np.float32).astype(np.float64))
    assert (result.error < 1e-6).all()


@pytest.mark.parametrize("remainder", ["fmod", "remainder"])
def test_remainders_agree_with_the_standard_library(remainder: str) -> None:
    rng = np.random.default_rng(2)
    left, right = rng.integers(-40, 40, 500) / 4, rng.integers(1, 20, 500) / 4
    expected = [getattr(math, remainder)(x, y) for x, y in zip(left.tolist(), right.tolist(), strict=True)]
    result = pointwise(lambda a, b: call(remainder, a, b), left, right)
    np.testing.assert_array_equal(result.values, expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@np.errstate(over="ignore")
def test_nextafter_moves_by_one_step_of_the_declared_type(dtype: npt.DTypeLike) -> None:
    type: np.dtype[Any] = np.dtype(dtype)
    largest = np.nextafter(np.array(INF, type), np.array(0, type))
    starts = np.array([1, 1, -1, 0, 0, 2, largest, 1.5, INF, NAN, 3], type)
    towards = np.array([2, 0, INF, 1, -1, 2, INF, -INF, 0, 1, NAN], type)
    expected = np.nextafter(starts, towards).astype(np.float64)
    result = pointwise(lambda a, b: call("nextafter", a, b), starts, towards)
    np.testing.assert_array_equal(result.values, expected)
    assert not result.error.any()
