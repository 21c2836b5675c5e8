"""Numbers of things, as people say them."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """``1 trial``, ``2 trials``, ``0 trials``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
