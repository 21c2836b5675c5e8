"""A candidate that seems quicker than the best so far is measured again, alternating with it, before it counts."""

from __future__ import annotations

import math
import statistics
from typing import Final

from tc.base.frozen import frozen
from tc.tuner.trial.messages import Timed
from tc.tuner.trial.trial_outcome import Failed, Measured
from tc.tuner.trial.workers import Measurer

ROUNDS: Final = 5
_FEW_ROUNDS: Final = 2


@frozen
class Leader:
    """The options of the best candidate so far, as canonical JSON, and its time."""

    options: str
    measured: Measured


def compare_with_best(
    measurer: Measurer, leader: Measured, slots: tuple[str, str], seconds: float
) -> Measured | Failed:
    """The time of the challenger, scaled by that of the leader: both are measured alternately.

    ``slots``: those of the leader and of the challenger, who were checked; ``seconds``: of one measurement.  What
    changes on the machine between two measurements changes for both of a round, so that a machine that others kept busy
    when the leader was measured, or that is busy now, makes none look quick.  ``Failed`` where the challenger fails;
    one whose leader cannot be measured any more has the time that it took itself.
    """
    ratios: list[float] = []
    alone: list[float] = []
    # Slow calls waver little, and take long.
    for _ in range(ROUNDS if leader.seconds < seconds else _FEW_ROUNDS):
        theirs = measurer.time(slots[0], seconds, math.inf)
        ours = measurer.time(slots[1], seconds, math.inf)
        if isinstance(ours, Failed):
            return ours
        alone.append(statistics.median(ours.samples))
        if isinstance(theirs, Timed):
            ratios.append(alone[-1] / statistics.median(theirs.samples))
    samples = tuple(leader.seconds * ratio for ratio in ratios) or tuple(alone)
    return Measured(statistics.median(samples), samples)
