"""``warn``: warnings point at the caller's line, not at one of this package."""

from __future__ import annotations

import sys
import warnings
from typing import Final

# This package, and what it calls itself through.
_BETWEEN: Final = ("tc", "contextlib")


def warn(message: str, category: type[Warning]) -> None:
    """Warns at the line of a program that calls this package, wherever in the package that is found out."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
