"""The one door to isl: a context of its own for every specialization, one compilation inside at a time.

isl contexts are not thread-safe, so a lock guards every use, and it is made anew in the child of a ``fork``.  Python's
garbage collector may free an isl object on any thread: islpy keeps the interpreter's lock in every call, so that no
other call is under way then.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import islpy as isl

from tc.base.errors import TCError

# About twenty seconds of isl's work on a current core: no accepted program of the tests comes near it.
MAX_OPERATIONS = 200_000_000
_EXCEEDED: Final = "maximal number of operations exceeded"  # isl's words


class _Door:
    """Holder of the lock, so that the child of a fork can replace it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def renew(self) -> None:
        self.lock = threading.RLock()


_DOOR = _Door()
os.register_at_fork(after_in_child=_DOOR.renew)


@contextmanager
def isl_context(max_operations: int = MAX_OPERATIONS, context: isl.Context | None = None) -> Iterator[isl.Context]:
    """An isl context, a fresh one unless given; ``isl.Error`` is raised when a block spends more than
    ``max_operations`` in it.

    Isl objects that outlive the block are touched only in blocks of the same context: copy results out as text or
    numbers.
    """
    with _DOOR.lock:
        entered = isl.Context() if context is None else context
        entered.reset_operations()
        entered.set_max_operations(max_operations)
        with budget_told(entered):
            yield entered


@contextmanager
def budget_told(context: isl.Context) -> Iterator[None]:
    """Whatever fails in the block since the budget is spent raises the ``isl.Error`` that says so.

    What isl had no operations left to print is None in Python, of which there is no number, and half a text is no set.
    """
    try:
        yield
    except TCError:
        raise
    except Exception as error:
        if (isinstance(error, isl.Error) and is_out_of_operations(error)) or not _is_spent(context):
            raise
        raise isl.Error(_EXCEEDED) from error


def _is_spent(context: isl.Context) -> bool:
    try:
        isl.Val.zero(context)
    except isl.Error as error:
        return is_out_of_operations(error)
    return False


def is_out_of_operations(error: isl.Error) -> bool:
    """Whether isl gave up because its budget is spent; every other error is a bug."""
    return _EXCEEDED in str(error)
