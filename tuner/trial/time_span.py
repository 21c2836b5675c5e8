"""Lengths of time as text: ``1h30m``, ``10min``, ``2 days``."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

# From the greatest on, with the seconds of one.
_UNITS: Final = (
    (("w", "week", "weeks"), 604800.0),
    (("d", "day", "days"), 86400.0),
    (("h", "hr", "hrs", "hour", "hours"), 3600.0),
    (("m", "min", "mins", "minute", "minutes"), 60.0),
    (("s", "sec", "secs", "second", "seconds"), 1.0),
)
_PLACES: Final = {name: place for place, (names, _) in enumerate(_UNITS) for name in names}
_NUMBER: Final = r"(\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})"
_PART: Final = re.compile(rf"{_NUMBER}\s*([a-z]+)\s*", re.ASCII | re.IGNORECASE)
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII | re.IGNORECASE)


def parse_seconds(text: str) -> float | None:
    """The seconds of numbers with units, the greatest unit first and each once; None for any other text."""
    if _WHOLE.fullmatch(text) is None:
        return None
    parts = [(float(amount), _PLACES.get(unit.lower())) for amount, unit in _PART.findall(text)]
    places = [place for _, place in parts if place is not None]
    if len(places) < len(parts) or any(first >= second for first, second in pairwise(places)):
        return None
    return sum(amount * _UNITS[place][1] for amount, place in parts if place is not None)


def rough_text(seconds: float) -> str:
    """The two greatest units of a length of time, as far as a person cares: ``1h30m``, ``12m5s``."""
    unit = 1 if seconds < 3600 else 60 if seconds < 86400 else 3600
    return span_text(unit * round(seconds / unit))


def span_text(seconds: float) -> str:
    """Seconds as ``parse_seconds`` reads them: ``1h30m``."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    days, hours = divmod(hours, 24)
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count]
    if rest or not parts:
        parts.append(f"{rest:g}s")
    return "".join(parts)
