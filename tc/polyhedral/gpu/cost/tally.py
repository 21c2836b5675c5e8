"""Sums of what many parts of a kernel ask for, as arrays of counts."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tc.prediction.demand import NAMES, Demand

# Counts in the order of the fields of ``Demand``, for sums of many.
Tally: TypeAlias = npt.NDArray[np.float64]

_PLACES: Final = {name: place for place, name in enumerate(NAMES)}
NOTHING: Final[Tally] = np.zeros(len(NAMES))
NOTHING.flags.writeable = False


def tally(**counts: float) -> Tally:
    """Counts by the names of their fields; the others are 0."""
    found = np.zeros(len(NAMES))
    for name, count in counts.items():
        found[_PLACES[name]] = count
    return found


def demand_of(counts: Tally) -> Demand:
    """The counts by name."""
    return Demand(*(float(count) for count in counts))


def are_like(one: Tally, other: Tally, tolerance: float) -> bool:
    """Whether nothing differs by more than this part of the greater one."""
    return bool((np.abs(one - other) <= tolerance * np.maximum(one, other)).all())
