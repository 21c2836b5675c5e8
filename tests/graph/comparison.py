"""Arrays for tests of operators, and comparison with what is expected."""

from __future__ import annotations

from typing import Any

import numpy as np


def uniform(*shape: int, seed: int = 0, low: float = -2, high: float = 2) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def whole(*shape: int, seed: int = 0, low: int = -9, high: int = 9, dtype: str = "int32") -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def f32(value: object) -> np.ndarray:
    return np.array(value, np.float32)


def i32(value: object) -> np.ndarray:
    return np.array(value, np.int32)


def i64(value: object) -> np.ndarray:
    return np.array(value, np.int64)


def same(found: Any, expected: Any, *, tolerance: float = 2e-6) -> None:
    """The same shape, type and numbers."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, expected)
