"""Whoever seems quicker than the best so far is measured again, in turns with it, before that counts."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Final

from tc.tuner.trial.messages import Timed
from tc.tuner.trial.outcome import Failed, Measured
from tc.tuner.trial.workers import Lane

ROUNDS: Final = 5
_FEW_ROUNDS: Final = 2


@dataclass(frozen=True, slots=True)
class Leader:
    """The options of the best candidate so far, as canonical JSON, and its time."""

    options: str
    measured: Measured


def challenge(workers: Lane, leader: Measured, slots: tuple[str, str], seconds: float) -> Measured | Failed:
    """The time of the challenger by that of the leader: what it takes, in turns with it, as a part of what that takes.

    ``slots``: those of the leader and of the challenger, who were checked; ``seconds``: of one measurement.  What
    changes on the machine between two measurements changes for both of a round, so that a machine that others kept busy
    when the leader was measured, or that is busy now, makes none look quick.  ``Failed`` where the challenger fails;
    one whose leader cannot be measured any more has the time that it took itself.
    """
    ratios: list[float] = []
    alone: list[float] = []
    # Slow calls waver little, and take long.
    for _ in range(ROUNDS if leader.seconds < seconds else _FEW_ROUNDS):
        theirs = workers.time(slots[0], seconds, math.inf)
        ours = workers.time(slots[1], seconds, math.inf)
        if isinstance(ours, Failed):
            return ours
        alone.append(statistics.median(ours.samples))
        if isinstance(theirs, Timed):
            ratios.append(alone[-1] / statistics.median(theirs.samples))
    samples = tuple(leader.seconds * ratio for ratio in ratios) or tuple(alone)
    return Measured(statistics.median(samples), samples)
