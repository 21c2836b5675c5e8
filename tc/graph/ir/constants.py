"""The contents of constants: arrays that are given, or computed when they are looked at.

Planning looks at few of those that it makes, so that what takes long is computed beside compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import numpy as np

from tc.base.once import Once

# What gives the contents of a constant, the same array each time.
Contents: TypeAlias = Callable[[], np.ndarray]


def given(array: np.ndarray) -> Contents:
    """What gives an array that is there."""
    return lambda: array


def later(make: Contents) -> Contents:
    """What computes an array when it is first asked, laid out in order; threads that ask at the same time wait.

    What it is made of is not held any longer than that.
    """
    found: Once[None, np.ndarray] = Once()
    waiting = [make]

    def computed() -> np.ndarray:
        array = in_order(waiting[0]())
        waiting.clear()
        return array

    return lambda: found.get(None, computed)


def in_order(array: np.ndarray) -> np.ndarray:
    """The array, or a copy of it whose elements lie in order."""
    return np.ascontiguousarray(array).reshape(array.shape)


class Constants(Mapping[str, np.ndarray]):
    """Arrays by name, each of which is computed when it is looked at."""

    def __init__(self, contents: Mapping[str, Contents]) -> None:
        self._contents: Final = contents

    @staticmethod
    def of(arrays: Mapping[str, np.ndarray]) -> Constants:
        """These arrays, or constants as they are."""
        if isinstance(arrays, Constants):
            return arrays
        return Constants({name: given(array) for name, array in arrays.items()})

    def __getitem__(self, name: str) -> np.ndarray:
        return self._contents[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)

    def __contains__(self, name: object) -> bool:
        return name in self._contents

    def contents(self) -> dict[str, Contents]:
        """What gives each of them."""
        return dict(self._contents)

    def only(self, names: Iterable[str]) -> Constants:
        """Those with one of these names."""
        wanted = set(names)
        return Constants({name: contents for name, contents in self._contents.items() if name in wanted})

    def with_more(self, contents: Mapping[str, Contents]) -> Constants:
        """With others in the place of those that have their names."""
        return Constants({**self._contents, **contents})
