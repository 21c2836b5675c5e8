"""``Deadline``: a moment by which something must have ended."""

from __future__ import annotations

from tc.base.frozen import frozen
from tc.tuner.trial.budget import Clock


@frozen
class Deadline:
    """The moment ``at`` by the ``clock``."""

    clock: Clock
    at: float

    @property
    def left(self) -> float:
        """Seconds until then; negative after it."""
        return self.at - self.clock()

    def allows(self, seconds: float) -> bool:
        """Whether what takes so many seconds ends before it."""
        return seconds <= self.left
