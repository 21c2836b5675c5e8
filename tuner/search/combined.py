"""The default search: seeds and neighbours of the default, then alternating generations of neighbours and children.

The static default is good, so that most of what is quicker lies near it; crossing finds the rest.  The pattern is fixed
and knows no budget, so that the first trials of a long search are those of a short one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from tc.targets.options import Options
from tc.tuner.search.generations import Breeder, Generations, Past, Proposal, seeded
from tc.tuner.search.genetic import DEFAULT, GeneticParameters, genetic_breeder, propose_around
from tc.tuner.search.refine import propose_neighbours
from tc.tuner.search.search import Origin
from tc.tuner.space.space import Space

_FIRST: Final = 20
_NEAR: Final = 15


def _first_guesses(past: Past, random: Random) -> Iterator[Proposal]:
    """Neighbours of the static default, then what has half of its genes."""
    default = past.space.encode(past.space.defaults)
    near = (Proposal(genome, Origin.REFINED) for genome in past.space.neighbours(default, random))
    return itertools.chain(itertools.islice(near, _NEAR), propose_around(past, random))


def combined_search(
    space: Space,
    random: Random,
    seeds: Iterable[Options] = (),
    parameters: GeneticParameters = DEFAULT,
    first: int = _FIRST,
) -> Generations:
    """The search to use where nothing else is asked for; a generation of neighbours has half of the population."""
    refining = Breeder(parameters.population // 2, propose_neighbours)
    begin = seeded(first, seeds, _first_guesses)
    return Generations(space, random, begin, (refining, genetic_breeder(parameters)))
