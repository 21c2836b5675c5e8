"""``Bound``: the lower bound of the time of a call, from the measured roofs of the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# A call that takes at most this many times the bound has no room left that would show.
NEAR: Final = 1.05


class Bound:
    """Seconds that no call falls below, from what was measured of the machine.

    A machine that others kept busy meanwhile seems slower than it is, and the bound too high.  So it is measured again,
    with ``again``, before anybody trusts that there is no room left, and a bound that a call falls below is dropped.
    """

    def __init__(self, seconds: float, again: Callable[[], float]) -> None:
        self.seconds: float | None = seconds
        self._again: Final = again

    def is_beaten(self, seconds: float) -> bool:
        """Whether a call of so many seconds is quicker than the machine seemed to allow, which is measured again."""
        if self.seconds is None or seconds >= self.seconds:
            return False
        self.seconds = min(self.seconds, self._again())
        return seconds < self.seconds

    def drop(self) -> None:
        """Forgets the lower bound of the time of a call."""
        self.seconds = None

    def is_reached(self, best: float) -> bool:
        """Whether a call of so many seconds leaves no room."""
        if self.seconds is None or best > NEAR * self.seconds:
            return False
        self.seconds = min(self.seconds, self._again())
        if best < self.seconds:
            self.seconds = None
            return False
        return best <= NEAR * self.seconds
