"""Settings and results of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import Final

from tc.artifact.executable import Executable
from tc.base.frozen import frozen
from tc.targets.options import Options
from tc.tuner.search.search import Trial
from tc.tuner.session.effort import DEFAULT, Effort
from tc.tuner.space.preferences import PLAIN, Preferences
from tc.tuner.space.starts import Starts
from tc.tuner.trial.budget import Budget
from tc.tuner.trial.trial_outcome import FailureKind, count_failures

# Of one measurement.
SECONDS: Final = DEFAULT.seconds


class Strategy(Enum):
    """How candidates are found."""

    COMBINED = "combined"  # genetic, with refinement of the best in turn
    GENETIC = "genetic"
    ORIGINAL = "original"  # genetic, with the parameters of Tensor Comprehensions
    RANDOM = "random"


class Numerics(Enum):
    """Which bits a winner may compute."""

    ANY = "any"  # whatever the oracle accepts
    BITWISE = "bitwise"  # those of the static default on the arguments of the search


@frozen
class TuningSettings:
    """How a search goes about it.

    ``seconds``: of one measurement.  ``starts``: options to try first.  ``reproducers``: the folder for scripts that
    reproduce what was killed.  ``effort``: how many candidates a generation has, and how often they are measured.
    ``preferences``: what makes a winner.
    """

    budget: Budget
    seed: int = 0
    strategy: Strategy = Strategy.COMBINED
    numerics: Numerics = Numerics.ANY
    jobs: int = 2
    seconds: float = SECONDS
    reproducers: Path | None = None
    starts: Starts = ()
    effort: Effort = DEFAULT
    preferences: Preferences = PLAIN


@frozen
class TuningResult:
    """What a search came to; times are seconds of a call, with intervals of 95 % confidence.

    ``default``: of the static default options, measured in turns with the winner.  ``bound``: the least that this
    machine allows, None if it is not known.  ``stopped``: why the search ended.  ``started``: what came of the options
    that it was to start from, as far as they were tried.  ``predicted``: no time was measured.
    """

    best: Options
    seconds: float
    interval: tuple[float, float]
    default: float
    bound: float | None
    numerics: str
    trials: tuple[Trial, ...]
    stopped: str
    executable: Executable = field(repr=False)
    started: tuple[Trial, ...] = ()
    predicted: bool = False

    @property
    def is_default(self) -> bool:
        """Whether the static default options won."""
        return self.best == type(self.best)()

    @property
    def speedup(self) -> float:
        """How many times as quick as the static default the winner is."""
        return self.default / self.seconds

    @property
    def failures(self) -> Mapping[FailureKind, int]:
        """How many candidates failed, by kind."""
        return count_failures(trial.outcome for trial in self.trials)
