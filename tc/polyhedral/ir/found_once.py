"""Attributes that are computed on first use.

Threads that ask at the same time may each find one; there is no lock that the child of a fork could wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class FoundOnce(Generic[Owner, Value]):
    """A method as an attribute of its object, which has it from then on."""

    def __init__(self, find: Callable[[Owner], Value]) -> None:
        self._find = find
        self.__doc__ = find.__doc__

    def __get__(self, owner: Owner, _class: type[Owner]) -> Value:
        value = self._find(owner)
        vars(owner)[self._find.__name__] = value
        return value
