"""Numbers of things, as people say them."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 trial``, ``2,000 trials``, ``0 trials``."""
    return f"{number:,} {noun_for(number, noun, plural)}"


def noun_for(number: int, noun: str, plural: str | None = None) -> str:
    """The noun as it stands behind a number; ``plural``: where it does not end in an s more."""
    return noun if number == 1 else plural or f"{noun}s"
