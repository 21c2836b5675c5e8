"""The default search: seeds and variations of the default, then generations of children and of neighbours in turn.

Crossing finds good regions, neighbours the best place in one.  The pattern is fixed and knows no budget, so that the
first trials of a long search are those of a short one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from tc.options import Options
from tc.tuner.generations import Breeder, Generations, Past, Proposal, seeded
from tc.tuner.genetic import DEFAULT, GeneticParameters, genetic_breeder, propose_around
from tc.tuner.random_search import propose_random
from tc.tuner.refine import GENERATION, propose_neighbours
from tc.tuner.space import Space

_FIRST: Final = 24


def _first_guesses(past: Past, random: Random) -> Iterator[Proposal]:
    """Anything, and variations of the static default, which is far from the worst, in turn."""
    return itertools.chain.from_iterable(zip(propose_around(past, random), propose_random(past, random), strict=False))


def combined_search(
    space: Space, random: Random, seeds: Iterable[Options] = (), parameters: GeneticParameters = DEFAULT
) -> Generations:
    """The search to use where nothing else is asked for."""
    first = seeded(_FIRST, seeds, _first_guesses)
    return Generations(space, random, first, (genetic_breeder(parameters), Breeder(GENERATION, propose_neighbours)))
