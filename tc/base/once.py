"""Values that are computed once per key; concurrent threads wait for the first one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Once(Generic[Key, Value]):
    """A table that makes each value once.

    Safe from many threads without a lock: only atomic operations of ``dict`` are used.  A failure is raised to the
    thread that made it; waiting threads then try themselves.  After ``fork``, what another thread of the parent was
    still making is made again.
    """

    def __init__(self) -> None:
        self._values: dict[Key, Value] = {}
        # By process, so that the child of a fork does not wait for threads that it does not have.
        self._making: dict[tuple[int, Key], threading.Event] = {}

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value for ``key``, made by ``make`` if there is none yet."""
        while key not in self._values:
            turn, own = (os.getpid(), key), threading.Event()
            done = self._making.setdefault(turn, own)
            if done is not own:
                done.wait()
                continue
            try:
                # Whoever had the turn before may have finished since we looked.
                if key not in self._values:
                    self._values[key] = make()
            finally:
                del self._making[turn]
                own.set()
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        """Whether the value is there."""
        return key in self._values

    def put(self, key: Key, value: Value) -> None:
        """From now on, this is the value for ``key``."""
        self._values[key] = value

    def items(self) -> tuple[tuple[Key, Value], ...]:
        """What has been made so far."""
        return tuple(self._values.items())
