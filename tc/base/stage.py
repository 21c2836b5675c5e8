"""``Stage``: one step on the way to a kernel, timed."""

from __future__ import annotations

from collections.abc import Callable

from tc.base.frozen import frozen


@frozen
class Stage:
    """One step that was run: its name, its duration in seconds, and what it made: a text, or what writes one."""

    name: str
    seconds: float
    made: str | Callable[[], str]

    @property
    def text(self) -> str:
        """What the step made."""
        return self.made if isinstance(self.made, str) else self.made()
