"""Keeps processes from forking while a thread is inside of SQLite, whose locks the child would inherit locked."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Gate:
    """Counts the threads inside; who forks waits until there are none, and lets none in meanwhile."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """As in a process with one thread: the child of a fork."""
        self.changed = threading.Condition()
        self.inside = 0
        self.forking = False

    def shut(self) -> None:
        with self.changed:
            self.changed.wait_for(lambda: not self.forking)
            self.forking = True
            self.changed.wait_for(lambda: self.inside == 0)

    def open(self) -> None:
        with self.changed:
            self.forking = False
            self.changed.notify_all()

    def enter(self) -> None:
        with self.changed:
            self.changed.wait_for(lambda: not self.forking)
            self.inside += 1

    def leave(self) -> None:
        with self.changed:
            self.inside -= 1
            self.changed.notify_all()


_GATE = _Gate()
os.register_at_fork(before=_GATE.shut, after_in_parent=_GATE.open, after_in_child=_GATE.renew)


@contextmanager
def inside_sqlite() -> Iterator[None]:
    """Around calls of SQLite that end soon; the thread must not fork meanwhile."""
    _GATE.enter()
    try:
        yield
    finally:
        _GATE.leave()
