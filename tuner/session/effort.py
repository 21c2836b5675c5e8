"""Efforts: one word for the budget and the other numbers of a search."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from tc.base.errors import OptionsError, nearest
from tc.base.frozen import frozen


@frozen
class Effort:
    """What a search takes by default.

    ``budget``: as ``Budget.parse`` reads it, time and, where there is a limit, generations.  ``first``: candidates of
    the first generation; ``population``: of every other one that is bred from all so far, twice those of one that
    refines the best.  ``repeats``: measurements of a candidate while the machine is not quiet.  ``rounds``: of the last
    comparison.  ``seconds``: of one measurement.
    """

    name: str
    budget: str
    first: int
    population: int
    repeats: int
    rounds: int
    seconds: float


DEFAULT: Final = Effort("default", "10m", first=20, population=16, repeats=3, rounds=11, seconds=0.08)
EFFORTS: Final = MappingProxyType(
    {
        "quick": Effort("quick", "1m, 12 generations", first=10, population=8, repeats=2, rounds=7, seconds=0.04),
        "default": DEFAULT,
        "thorough": Effort("thorough", "2h", first=40, population=32, repeats=5, rounds=21, seconds=0.16),
    }
)


def effort_of(name: str) -> Effort:
    """The effort with this name; OptionsError for any other."""
    if not isinstance(name, str) or name not in EFFORTS:
        guess = nearest(name, EFFORTS) if isinstance(name, str) else None
        hint = f"; did you mean {guess!r}?" if guess else ""
        raise OptionsError(f"effort must be one of {', '.join(EFFORTS)}, got {name!r}{hint}")
    return EFFORTS[name]
