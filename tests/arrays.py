"""Arrays for tests of calls: values whose sums and products are exact, and results of either framework as arrays."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray


def whole(*shape: int, seed: int = 0) -> Array:
    """Small whole numbers: their sums and products are exact, so results can be compared bit by bit."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def array(result: object) -> Array:
    """A single result as a NumPy array."""
    assert not isinstance(result, tuple)
    return np.asarray(result)
