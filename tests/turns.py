"""Of many parameters of a test, those that run by default; ``pytest -m slow`` runs the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

SLOW = pytest.mark.slow


def every(count: int, values: Iterable[object]) -> list[object]:
    """Every so many of the values by default."""
    return [pytest.param(value, marks=() if number % count == 0 else SLOW) for number, value in enumerate(values)]


def every_row(count: int, rows: Iterable[tuple[object, ...]]) -> list[object]:
    """The same of parameters that have several values each."""
    return [pytest.param(*row, marks=() if number % count == 0 else SLOW) for number, row in enumerate(rows)]


def one_in(count: int) -> pytest.MarkDecorator:
    """Of the tests that a function makes, whatever makes them, every so many of those that run by default."""
    return pytest.mark.one_in(count)


def take_turns(items: Iterable[pytest.Item]) -> None:
    """Marks as slow what ``one_in`` leaves out."""
    numbers = Counter[str]()
    for item in items:
        mark = item.get_closest_marker("one_in")
        if mark is None or item.get_closest_marker("slow") is not None:
            continue
        function = item.nodeid.partition("[")[0]
        if numbers[function] % mark.args[0]:
            item.add_marker(SLOW)
        numbers[function] += 1
