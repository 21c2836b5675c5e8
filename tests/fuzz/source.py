"""The source of randomness of one program."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Source(random.Random):
    """A random generator with the two questions that a generator of programs asks all the time."""

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.random() < probability

    def weighted(self, choices: Sequence[tuple[float, T]]) -> T:
        """One of the choices, each with its weight."""
        return self.choices([c for _, c in choices], [w for w, _ in choices])[0]

    def some(self, items: Sequence[T], probability: float) -> list[T]:
        """Each item with the given probability, in order."""
        return [item for item in items if self.chance(probability)]


def source_of(seed: int, number: int) -> Source:
    """The randomness of program ``number`` of a run; the same on every machine."""
    return Source(f"{seed}/{number}")
