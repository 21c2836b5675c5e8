"""Of many parameters of a test, those that run by default; ``pytest -m slow`` runs the others."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

SLOW = pytest.mark.slow


def every(count: int, values: Iterable[object]) -> list[object]:
    """Every so many of the values by default."""
    return [pytest.param(value, marks=() if number % count == 0 else SLOW) for number, value in enumerate(values)]


def every_row(count: int, rows: Iterable[tuple[object, ...]]) -> list[object]:
    """The same of parameters that have several values each."""
    return [pytest.param(*row, marks=() if number % count == 0 else SLOW) for number, row in enumerate(rows)]
