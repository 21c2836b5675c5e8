"""Memoization by object identity.

Unrolled loops make thousands of copies that share most of their parts.  To compare these by value takes about as long
as to compute the answer; to compare identities takes no time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

Found = TypeVar("Found")


class Remembered(Generic[Found]):
    """Results by the objects that they follow from, which must not change, and are kept."""

    def __init__(self) -> None:
        self._found: Final[dict[tuple[int, ...], tuple[tuple[object, ...], Found]]] = {}

    def of(self, objects: tuple[object, ...], find: Callable[[], Found]) -> Found:
        """What ``find`` says, or said of the same objects before."""
        key = tuple(map(id, objects))
        known = self._found.get(key)
        if known is None:
            known = self._found[key] = objects, find()
        return known[1]
