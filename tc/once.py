"""Values that are made once per key, by whichever thread asks first, while the others wait."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class _Making(Generic[Value]):
    """A value that a thread of process ``process`` is making."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.done = threading.Event()
        self.value: Value | None = None


class Once(Generic[Key, Value]):
    """A table that makes each value once.

    Safe from many threads without a lock: only atomic operations of ``dict`` are used.  After ``fork``, what another
    thread of the parent was still making is made again.  A failure is raised to the thread that made it; waiting
    threads then try themselves.
    """

    def __init__(self) -> None:
        self._entries: dict[Key, _Making[Value]] = {}

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value for ``key``, made by ``make`` if nobody has it yet."""
        while True:
            own: _Making[Value] = _Making()
            entry = self._entries.setdefault(key, own)
            if entry is own:
                return self._make(key, own, make)
            if entry.value is None and not entry.done.is_set() and entry.process != os.getpid():
                self._entries.pop(key, None)
                continue
            entry.done.wait()
            if entry.value is not None:
                return entry.value

    def _make(self, key: Key, own: _Making[Value], make: Callable[[], Value]) -> Value:
        try:
            own.value = make()
            return own.value
        finally:
            if own.value is None:
                self._entries.pop(key, None)
            own.done.set()
