"""Numbers for people: times in the unit that fits, ratios, shares."""

from __future__ import annotations

from typing import Final

from tc.base.frozen import frozen


@frozen
class TimeUnit:
    """A unit of time; ``seconds``: how many it has."""

    name: str
    seconds: float

    def number(self, seconds: float) -> str:
        """How many of the unit, with three digits that count."""
        return significant(seconds / self.seconds)

    def text(self, seconds: float) -> str:
        """The number and the unit."""
        return f"{self.number(seconds)}\N{NO-BREAK SPACE}{self.name}"


_UNITS: Final = (TimeUnit("s", 1.0), TimeUnit("ms", 1e-3), TimeUnit("\N{MICRO SIGN}s", 1e-6), TimeUnit("ns", 1e-9))


def unit_for(seconds: float) -> TimeUnit:
    """The greatest unit of which there is at least one; nanoseconds for less."""
    # A number that rounds up to the next unit is written in that.
    return next((unit for unit in _UNITS if seconds >= 0.9995 * unit.seconds), _UNITS[-1])


def time_text(seconds: float) -> str:
    """A time in the unit that fits."""
    return unit_for(seconds).text(seconds)


def tick_text(seconds: float) -> str:
    """A round time in the unit that fits, without zeros that say nothing."""
    unit = unit_for(seconds)
    number = unit.number(seconds)
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number}\N{NO-BREAK SPACE}{unit.name}"


def interval_text(low: float, high: float) -> str:
    """Both ends of an interval of times, in one unit."""
    unit = unit_for(high)
    return f"{unit.number(low)} to {unit.text(high)}"


def significant(value: float) -> str:
    """Three digits that count, without an exponent where people would write none."""
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.2e}"
    # The exponent of the number as it is rounded: 0.9996 has the digits of 1.
    digits = max(0, 2 - int(f"{value:.2e}".partition("e")[2]))
    return f"{value:,.{digits}f}"


def ratio_text(ratio: float) -> str:
    """How many times: 1.13 with the sign of multiplication."""
    return f"{ratio:.2f}\N{MULTIPLICATION SIGN}" if ratio < 99.95 else f"{significant(ratio)}\N{MULTIPLICATION SIGN}"


def share_text(share: float) -> str:
    """A share of a whole in per cent; one that is there is never 0."""
    percent = 100 * share
    return "< 1 %" if 0 < percent < 0.5 else f"{percent:.0f} %"
