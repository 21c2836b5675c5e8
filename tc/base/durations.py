"""Times of calls as text."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Seconds in the unit that fits: ``1.23 ms``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
