"""Who gets the adjoint of a maximum or minimum that several terms reach."""

from __future__ import annotations

from enum import Enum

from tc.base.errors import OptionsError


class Ties(Enum):
    """The choices."""

    SPLIT = "split"  # all of them, in equal parts
    FIRST = "first"  # the one of the first instance


def ties_called(name: str) -> Ties:
    """The choice of this name; OptionsError if there is none."""
    for choice in Ties:
        if choice.value == name:
            return choice
    raise OptionsError(f"ties must be 'split' or 'first', got {name!r}")
