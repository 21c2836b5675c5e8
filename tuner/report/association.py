"""Which options the time of a kernel goes with: a one-way analysis of variance for each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from tc.base.frozen import frozen

# With fewer trials than this for a value of an option, on average, its values explain anything by chance.
_TRIALS_PER_VALUE: Final = 2.0


@frozen
class Association:
    """How much of the variance of the logarithms of times goes with the values of an option.

    ``share``: eta squared.  ``adjusted``: the same without what as many values explain by chance, at least 0.
    ``groups``: the times by value.
    """

    option: str
    share: float
    adjusted: float
    groups: Mapping[str, tuple[float, ...]]


def associations(seconds: Sequence[float], columns: Mapping[str, Sequence[str]]) -> tuple[Association, ...]:
    """One for every option that can be told about, the strongest first.

    ``seconds``: positive times.  ``columns``: for each option its value at each of them.  Left out are options with a
    single value, and those with almost as many values as there are times.
    """
    found = (association(option, seconds, values) for option, values in columns.items())
    told = (one for one in found if one is not None)
    return tuple(sorted(told, key=lambda one: (-one.adjusted, -one.share, one.option)))


def association(option: str, seconds: Sequence[float], values: Sequence[str]) -> Association | None:
    """What one option explains; None where that cannot be told, or all times are the same."""
    groups: dict[str, list[float]] = defaultdict(list)
    for time, value in zip(seconds, values, strict=True):
        groups[value].append(time)
    count, kinds = len(seconds), len(groups)
    if kinds < 2 or count < _TRIALS_PER_VALUE * kinds:
        return None
    within, total = sum(map(_scatter, groups.values())), _scatter(seconds)
    if total <= 0:
        return None
    # Scatter is a sum of rounded squares.
    share = min(1.0, max(0.0, 1 - within / total))
    adjusted = max(0.0, 1 - (1 - share) * (count - 1) / (count - kinds))
    return Association(option, share, adjusted, {value: tuple(times) for value, times in groups.items()})


def _scatter(seconds: Sequence[float]) -> float:
    """The sum of squared distances of the logarithms from their mean."""
    logarithms = [math.log(time) for time in seconds]
    mean = math.fsum(logarithms) / len(logarithms)
    return math.fsum((one - mean) ** 2 for one in logarithms)
