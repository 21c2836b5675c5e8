"""Attributes that are computed on first use.

Threads may compute one at the same time, each for itself: a lock could be held when the process forks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class LazyAttribute(Generic[Owner, Value]):
    """A descriptor that replaces itself, on first use, by the value of a method."""

    def __init__(self, find: Callable[[Owner], Value]) -> None:
        self._find = find
        self.__doc__ = find.__doc__

    def __get__(self, owner: Owner, _class: type[Owner]) -> Value:
        value = self._find(owner)
        vars(owner)[self._find.__name__] = value
        return value
