"""Ages and sizes as people write them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from tc.base.errors import OptionsError
from tc.tuner.trial.time_span import parse_seconds

_BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER: Final = r"(\d{1,9}(?:\.\d{1,9})?)"
# Months or minutes: a wrong guess would delete what is too young.
_AMBIGUOUS: Final = re.compile(r"\dm(?![a-z])|\d\s+m(?![a-z])", re.ASCII | re.IGNORECASE)
_SIZE: Final = re.compile(rf"{_NUMBER}\s*([KMGT]?)i?B?", re.ASCII | re.IGNORECASE)
# What a date can be moved by.
_OLDEST: Final = 36500.0 * 86400


def parse_age(text: str) -> timedelta:
    """``90d``, ``12h``, ``1d12h``, ``4 weeks`` or ``30min``; OptionsError for anything else, and for ``30m``."""
    asked = text.strip()
    seconds = None if _AMBIGUOUS.search(asked) else parse_seconds(asked)
    if seconds is None or seconds > _OLDEST:
        raise OptionsError(f"an age is written as 30min, 12h, 90d or 4w, got {text!r}")
    return timedelta(seconds=seconds)


def parse_size(text: str) -> int:
    """``500M`` or ``1.5G``, in bytes; OptionsError for anything else."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise OptionsError(f"a size is written as 500K, 200M or 1G, got {text!r}")
    return int(float(found[1]) * _BYTES[found[2].upper()])
