"""Of many parameters of a test, those that run by default; ``pytest -m slow`` runs the others."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

SLOW = pytest.mark.slow


def every(count: int, values: Iterable[object]) -> list[object]:
    """Every so many of the values by default."""
    return [pytest.param(value, marks=() if number % count == 0 else SLOW) for number, value in enumerate(values)]
