"""Scales: where a value lies along an axis, and at which values the axis has ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, Protocol

from tc.base.frozen import frozen

# Values of one decade at which a logarithmic axis may have ticks, from few to many.
_IN_DECADE: Final = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
# So many ticks an axis has at least, if there are round values for them, and at most.
_FEWEST: Final = 3
_MOST: Final = 7


class Scale(Protocol):
    """Where values lie on a picture."""

    def place(self, value: float) -> float:
        """Where a value lies."""
        ...

    def ticks(self) -> tuple[float, ...]:
        """Round values within the scale."""
        ...


@frozen
class LinearScale:
    """From the values ``low`` to ``high``, which differ, to the places ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """As the protocol says."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> tuple[float, ...]:
        """Multiples of 1, 2 or 5 times a power of ten."""
        step = _step((self.high - self.low) / (_MOST - 1))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return tuple(number * step for number in range(first, last + 1))


@frozen
class LogScale:
    """As ``LinearScale``, in the logarithms of values that are all positive."""

    low: float
    high: float
    start: float
    end: float

    @staticmethod
    def over(values: Iterable[float], start: float, end: float) -> LogScale:
        """A scale that holds all values, of which there is one at least, with a little room around them."""
        found = tuple(values)
        low, high = math.log(min(found)), math.log(max(found))
        room = max(0.05 * (high - low), 0.05)
        return LogScale(math.exp(low - room), math.exp(high + room), start, end)

    def place(self, value: float) -> float:
        """As the protocol says."""
        span = math.log(self.high) - math.log(self.low)
        return self.start + (math.log(value) - math.log(self.low)) / span * (self.end - self.start)

    def ticks(self) -> tuple[float, ...]:
        """Round values of each decade, or of every second decade and so on; round multiples where a decade is long."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        stride = max(1, math.ceil((last - first) / _MOST))
        choices = [self._within(first, last, stride, leads) for leads in _IN_DECADE]
        fitting = [ticks for ticks in choices if len(ticks) <= _MOST]
        chosen = next((ticks for ticks in fitting if len(ticks) >= _FEWEST), ())
        # Within less than a decade a logarithmic axis is almost a linear one.
        return chosen or LinearScale(self.low, self.high, self.start, self.end).ticks()

    def _within(self, first: int, last: int, stride: int, leads: tuple[float, ...]) -> tuple[float, ...]:
        decades = range(first, last + 1, stride)
        # A power of a whole number is exact where a decade is not.
        values = (float(f"{lead}e{decade}") for decade in decades for lead in leads)
        return tuple(value for value in values if self.low <= value <= self.high)


def _step(least: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is at least so much."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(lead * power for lead in (1.0, 2.0, 5.0, 10.0) if lead * power >= least * (1 - 1e-9))
