"""The final measurement: the contenders alternate, and their times have confidence intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.tuner.trial.deadline import Deadline
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.workers import Packed, Workers

_CONFIDENCE: Final = 0.95
_WORTH: Final = 0.99
# That one measurement needs at least, be they ever so slow.
_CALLS: Final = 6


@frozen
class Contender:
    """Seconds of a call in every round, and the hash of the bits of its results."""

    samples: tuple[float, ...]
    numerics: str

    @property
    def seconds(self) -> float:
        """The median over the rounds."""
        return statistics.median(self.samples)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the median lies, with 95 % confidence."""
        return interval(self.samples)


def confirm(
    workers: Workers,
    contenders: Mapping[str, Packed],
    rounds: int,
    seconds: float,
    go_on: Callable[[int], bool],
    *,
    deadline: Deadline | None = None,
    call: float = 0.0,
) -> dict[str, Contender]:
    """Measures the contenders alternately, so that changes of the machine affect all of them alike.

    Those that fail drop out.  Every one has as many samples; there is one round at least, and another one where
    ``go_on`` says so, after so many.  ``deadline``: nothing begins that would end after it, and there are as many
    rounds as that allows, or none is found; ``call``: seconds that a call of the slowest contender takes, as far as
    that is known.
    """
    numerics: dict[str, str] = {}
    longest = max(seconds, _CALLS * call)
    if deadline is not None and not deadline.allows(2 * len(contenders) * longest):
        return {}
    for name, packed in contenders.items():
        checked = workers.check(packed, name)
        if isinstance(checked, Checked):
            numerics[name] = checked.numerics
    samples: dict[str, list[float]] = {name: [] for name in numerics}
    for number in range(rounds):
        if number and not go_on(number):
            break
        if deadline is not None and not deadline.allows(len(samples) * longest):
            break
        for name in list(samples):
            timed = workers.time(name, seconds, math.inf)
            if isinstance(timed, Timed):
                samples[name].append(statistics.median(timed.samples))
            else:
                del samples[name]
    return {name: Contender(tuple(taken), numerics[name]) for name, taken in samples.items() if taken}


def is_quicker(one: Contender, than: Contender) -> bool:
    """Whether the ratio of both, round by round, is below 0.99 with 95 % confidence: less is not worth a change."""
    ratios = [mine / yours for mine, yours in zip(one.samples, than.samples, strict=True)]
    return interval(ratios)[1] < _WORTH


def is_cheaper(one: Sequence[float], than: Sequence[float]) -> bool:
    """The same of costs, round by round, which may be of either sign: whether the difference is worth a change."""
    differences = [mine - yours for mine, yours in zip(one, than, strict=True)]
    return interval(differences)[1] < -(1 - _WORTH) * abs(statistics.median(than))


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """Where the median of a distribution lies, with 95 % confidence: between two of the samples (order statistics).

    With fewer than six samples no two of them are that far apart, and the interval is all of them.
    """
    ordered, count = sorted(samples), len(samples)
    best = 0
    for cut in range(1, count // 2):
        # The median is outside of [cut, count - 1 - cut] if at most ``cut`` samples lie on one side of it.
        outside = 2 * sum(math.comb(count, k) for k in range(cut + 1)) / 2**count
        if 1 - outside >= _CONFIDENCE:
            best = cut
    return ordered[best], ordered[count - 1 - best]
