"""Every search there is, and how it is run on a landscape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Final, TypeAlias

from tc.tuner.search.combined import combined_search
from tc.tuner.search.genetic import ORIGINAL, genetic_search
from tc.tuner.search.random_search import random_search
from tc.tuner.search.refine import refining_search
from tc.tuner.search.replay import Decision, replay
from tc.tuner.search.search import Search
from tc.tuner.space.space import Space
from tc.tuner.trial.trial_outcome import Measured
from tests.tuner.landscapes import SPACE, Landscape

MakeSearch: TypeAlias = Callable[[Space, Random], Search]

SEARCHES: Final[Mapping[str, MakeSearch]] = MappingProxyType(
    {
        "random": random_search,
        "refining": refining_search,
        "genetic": genetic_search,
        "original": lambda space, random: genetic_search(space, random, parameters=ORIGINAL),
        "combined": combined_search,
    }
)


def run(name: str, landscape: Landscape, trials: int, seed: int = 0, space: Space = SPACE) -> tuple[Decision, ...]:
    """The decisions of a search."""
    return replay(SEARCHES[name](space, Random(seed)), {}, landscape, trials)


def best_microseconds(decisions: tuple[Decision, ...]) -> float:
    """Of the winner; infinite without one."""
    measured = (d.outcome.seconds for d in decisions if isinstance(d.outcome, Measured))
    return 1e6 * min(measured, default=float("inf"))
