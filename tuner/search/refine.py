"""Refinement of the best: its neighbours along each gene (coordinate search), then along several at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from tc.targets.options import Options
from tc.tuner.search.generations import Breeder, Generations, Past, Proposal, seeded
from tc.tuner.search.random_search import propose_random
from tc.tuner.search.search import Origin
from tc.tuner.space.space import Space

GENERATION: Final = 8
# After so many proposals for one generation they lie one step farther away.
_PATIENCE: Final = 200


def propose_neighbours(past: Past, random: Random) -> Iterator[Proposal]:
    """Neighbours of the best in any order, then what is two steps from it; nothing while nothing was measured.

    Where hardly anything is new within two steps, ever more of them.
    """
    ranked = past.ranked()
    if not ranked:
        return
    best = ranked[0].candidate
    for genome in past.space.neighbours(best.genome, random):
        yield Proposal(genome, Origin.REFINED, (best.number,))
    for number in itertools.count():
        genome = best.genome
        for _ in range(2 + number // _PATIENCE):
            genome = past.space.step(genome, random)
        yield Proposal(genome, Origin.REFINED, (best.number,))


def refining_search(space: Space, random: Random, seeds: Iterable[Options] = ()) -> Generations:
    """A search that steps to the quickest neighbour; random while nothing was measured."""

    def propose(past: Past, random: Random) -> Iterator[Proposal]:
        return propose_neighbours(past, random) if past.ranked() else propose_random(past, random)

    return Generations(space, random, seeded(GENERATION, seeds, propose), (Breeder(GENERATION, propose),))
