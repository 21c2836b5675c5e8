"""The one door to isl: a context of its own for every compilation, one compilation inside at a time.

isl contexts are not thread-safe and Python's garbage collector may free an isl object on any thread, so a lock
guards every use, and it is made anew in the child of a ``fork``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl

# About twenty seconds of isl's work on a current core: no accepted program of the tests comes near it.
MAX_OPERATIONS = 200_000_000


class _Door:
    """Holder of the lock, so that the child of a fork can replace it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def renew(self) -> None:
        self.lock = threading.RLock()


_DOOR = _Door()
os.register_at_fork(after_in_child=_DOOR.renew)


@contextmanager
def isl_context(max_operations: int = MAX_OPERATIONS) -> Iterator[isl.Context]:
    """A fresh isl context; ``isl.Error`` is raised when more than ``max_operations`` are spent in it.

    Every isl object made inside must be dropped before the block ends: copy results out as text or numbers.
    """
    with _DOOR.lock:
        context = isl.Context()
        context.set_max_operations(max_operations)
        yield context


def is_out_of_operations(error: isl.Error) -> bool:
    """Whether isl gave up because its budget is spent; every other error is a bug."""
    return "maximal number of operations exceeded" in str(error)
