"""``Interruption``: a command is asked to end, with Ctrl-C, SIGTERM (Slurm, systemd) or SIGHUP (a lost ssh)."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tc.tuner.session.say import say_in_handler
from tc.tuner.trial.deadline import Deadline

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Seconds for comparing what was found; who kills a job a while after SIGTERM waits 30 s at least.
_COMPARING: Final = 20.0


class StoppedError(KeyboardInterrupt):
    """The command ends at once; ``status``: with this exit status."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status: Final = status


class Interruption:
    """Called, it tells whether a signal came.  The next one, and one that comes before ``patient`` is set, ends the
    command at once: it raises StoppedError where the command is.
    """

    def __init__(self) -> None:
        self.patient = False
        self._number: int | None = None
        self._over = False
        self._deadline: Deadline | None = None

    def __call__(self) -> bool:
        """Whether a signal came."""
        return self._number is not None

    @property
    def status(self) -> int:
        """The exit status of what a signal ends, by convention."""
        return 0 if self._number is None else 128 + self._number

    @property
    def deadline(self) -> Deadline | None:
        """By when everything must have ended; None without a signal.  It counts from when it is first asked for."""
        if self._number is not None and self._deadline is None:
            self._deadline = Deadline(time.monotonic, time.monotonic() + _COMPARING)
        return self._deadline

    def note(self, number: int, _frame: object) -> None:
        """The handler of signals."""
        if self._over:
            return  # it is ending already
        again, self._number = self._number is not None, number
        if again or not self.patient:
            self._over = True
            raise StoppedError(self.status)
        if number == signal.SIGINT:
            say_in_handler("finishing what is in flight; press Ctrl-C again to stop at once")
        else:
            name = signal.Signals(number).name
            say_in_handler(f"{name}: finishing what is in flight; a second signal stops at once")


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """What notes Ctrl-C, SIGTERM and SIGHUP while the block runs; those that are ignored, as by ``nohup``, stay so."""
    interruption = Interruption()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    noted = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in noted:
        signal.signal(number, interruption.note)
    try:
        yield interruption
    finally:
        for number in noted:
            signal.signal(number, before[number])
