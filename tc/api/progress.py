"""``Progress``: a bar in the last line of a terminal, for work that takes longer than people wait without a word."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from tc.tuner.session.status_line import StatusLine

# Seconds after which the bar appears.
PATIENCE: Final = 2.0
# Seconds after which a bar that stands still is drawn again, since it says how long the work has taken.
INTERVAL: Final = 0.5
_WIDTH: Final = 20


class Progress:
    """Work of ``count`` parts, called ``title``.  Terminals alone show it, and only if ``shown``."""

    def __init__(self, title: str, count: int, *, shown: bool = True) -> None:
        self._title: Final = title
        self._count: Final = max(count, 1)
        self._shown: Final = shown and sys.stderr is not None and sys.stderr.isatty()
        self._begun: Final = time.monotonic()
        self._status: StatusLine | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.clear()

    def at(self, done: int, what: str) -> None:
        """So many parts are done; ``what``: of what kind they are, or what is done now."""
        taken = time.monotonic() - self._begun
        if not self._shown or taken < PATIENCE:
            return
        if self._status is None:
            from tc.tuner.session.status_line import StatusLine

            self._status = StatusLine()
        filled = _WIDTH * min(done, self._count) // self._count
        bar = "#" * filled + "-" * (_WIDTH - filled)
        self._status.show(f"tc: {self._title} [{bar}] {done} of {self._count} {what}, {taken:.0f} s")
