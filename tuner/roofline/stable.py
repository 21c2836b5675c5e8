"""The least of repeated measurements, taken until it is stable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Better by less than this part is nothing new.
_NEW: Final = 0.01


def least(measure: Callable[[], float], calm: int, most: int) -> float:
    """The least of what is measured, until ``calm`` measurements in a row found nothing less, by 1 % at least.

    Others that work meanwhile make measurements greater, never less: one of them must find the machine quiet.
    ``most``: measurements in all.
    """
    found, since = measure(), 0
    for _ in range(most - 1):
        one = measure()
        since = 0 if one < (1 - _NEW) * found else since + 1
        found = min(found, one)
        if since >= calm:
            break
    return found
