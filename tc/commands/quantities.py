"""Ages and sizes as people write them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from tc.errors import OptionsError

_DAYS: Final = {"w": 7.0, "d": 1.0, "h": 1 / 24}
_BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER: Final = r"(\d{1,9}(?:\.\d{1,9})?)"
_AGE: Final = re.compile(rf"{_NUMBER}\s*([wdh])", re.ASCII)
_SIZE: Final = re.compile(rf"{_NUMBER}\s*([KMGT]?)i?B?", re.ASCII | re.IGNORECASE)
# What a date can be moved by.
_OLDEST: Final = 36500.0


def parse_age(text: str) -> timedelta:
    """``90d``, ``12h`` or ``4w``; OptionsError for anything else."""
    found = _AGE.fullmatch(text.strip())
    days = None if found is None else float(found[1]) * _DAYS[found[2]]
    if days is None or days > _OLDEST:
        raise OptionsError(f"an age is written as 12h, 90d or 4w, got {text!r}")
    return timedelta(days=days)


def parse_size(text: str) -> int:
    """``500M`` or ``1.5G``, in bytes; OptionsError for anything else."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise OptionsError(f"a size is written as 500K, 200M or 1G, got {text!r}")
    return int(float(found[1]) * _BYTES[found[2].upper()])


def size_text(size: int) -> str:
    """Bytes in the unit that fits: ``1.5 MiB``."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.4g} {unit}"
        amount /= 1024
    return f"{amount:.4g} TiB"
