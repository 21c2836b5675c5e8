"""Counts with the right singular or plural, bytes and times, as text."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 trial``, ``2,000 trials``, ``0 trials``."""
    return f"{number:,} {noun_for(number, noun, plural)}"


def noun_for(number: int, noun: str, plural: str | None = None) -> str:
    """The noun as it stands behind a number; ``plural``: where it does not end in an s more."""
    return noun if number == 1 else plural or f"{noun}s"


def bytes_text(size: int) -> str:
    """Bytes in the unit that fits: ``1.5 GiB``."""
    amount, place = float(size), 0
    while amount >= 1024 and place < len(_UNITS) - 1:
        amount, place = amount / 1024, place + 1
    return f"{amount:.0f} {_UNITS[place]}" if amount >= 1000 else f"{amount:.3g} {_UNITS[place]}"


def duration(seconds: float) -> str:
    """Seconds in the unit that fits: ``1.23 ms``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
