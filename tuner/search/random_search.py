"""Random search: every gene at random, the paper's other type of search (Section 6.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from tc.targets.options import Options
from tc.tuner.search.generations import Breeder, Generations, Past, Proposal, seeded
from tc.tuner.search.search import Origin
from tc.tuner.space.space import Space

GENERATION: Final = 16


def propose_random(past: Past, random: Random) -> Iterator[Proposal]:
    """Anything in the space."""
    while True:
        yield Proposal(past.space.random(random), Origin.RANDOM)


def random_search(space: Space, random: Random, seeds: Iterable[Options] = ()) -> Generations:
    """A search that learns nothing from what it is told."""
    return Generations(space, random, seeded(GENERATION, seeds, propose_random), (Breeder(GENERATION, propose_random),))
