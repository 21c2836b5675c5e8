"""Genetic search (*Tensor Comprehensions*, Section 6.2; the parameters of its public implementation).

A child takes every gene from any of three parents, which are drawn with more chances the quicker they are, and then
every gene changes with a low probability.

Four choices of the original are kept only under the name ``ORIGINAL``:

- 100 candidates a generation.  On a processor, where one takes a second or two, half of a ten-minute budget is gone
  before the first child.  Here a generation has 16.
- Chances in proportion to 1/time.  Of kernels that differ by a few percent, as the better ones of a generation do, all
  have the same chance.  Here they fall with the rank.
- Everything that was measured stays and is mutated in place, and children fill only the slots of what failed.  The
  slow half never dies, so that most of a generation comes from parents that are worth little.  Here parents are the
  quickest of all so far, and all of a generation are their children.
- Nothing new comes in once enough was measured, so that what the first generation missed is found by mutation alone.
  Here a fifth of a generation is random.

What is kept: three parents, crossover of 80 %, mutation of 7 % of the genes, at most 1000 proposals in a row without
a new one that is legal, and new random genomes around the best where fewer than three candidates were measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from random import Random
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.targets.options import Options
from tc.tuner.search.generations import Breeder, Generations, Past, Proposal, seeded
from tc.tuner.search.random_search import propose_random
from tc.tuner.search.search import Origin, Trial
from tc.tuner.space.space import Space
from tc.tuner.trial.trial_outcome import Measured

_PARENTS: Final = 3
# Around the best, where there is nothing to cross: so many genes change.
_AROUND: Final = 0.5


class Selection(Enum):
    """How likely one of several trials becomes a parent."""

    ROULETTE = "roulette"  # in proportion to 1/time
    RANK = "rank"  # falling evenly from the quickest to the slowest


@frozen
class GeneticParameters:
    """``population``: candidates of a generation, with the ``elites``, which need not be tried again.

    ``parents``: the most of the quickest that children come from; None for the last generation and the elites, of which
    all that were measured are mutated before there are children.
    ``crossover``: how likely a child has three parents and not one.  ``mutation``: how likely a gene changes.
    ``immigrants``: how likely a random genome takes the place of a child.
    """

    population: int = 16
    elites: int = 0
    parents: int | None = 16
    selection: Selection = Selection.RANK
    crossover: float = 0.8
    mutation: float = 0.07
    immigrants: float = 0.2


DEFAULT: Final = GeneticParameters()
# For 25 generations.
ORIGINAL: Final = GeneticParameters(
    population=100, elites=10, parents=None, selection=Selection.ROULETTE, immigrants=0.0
)


def genetic_breeder(parameters: GeneticParameters = DEFAULT) -> Breeder:
    """Generations of children."""

    def propose(past: Past, random: Random) -> Iterator[Proposal]:
        ranked = past.ranked()
        if len(ranked) < _PARENTS:
            yield from propose_around(past, random)
        if parameters.parents is not None:
            pool = ranked[: parameters.parents]
        else:
            elites, latest = ranked[: parameters.elites], past.latest()
            survivors = [trial for trial in latest if isinstance(trial.outcome, Measured) and trial not in elites]
            yield from (_mutant(trial, past.space, random, parameters.mutation) for trial in survivors)
            pool = (*elites, *survivors)
        while True:
            if random.random() < parameters.immigrants:
                yield Proposal(past.space.random(random), Origin.RANDOM)
            else:
                yield _child(pool, past.space, random, parameters)

    return Breeder(parameters.population - parameters.elites, propose)


def propose_around(past: Past, random: Random) -> Iterator[Proposal]:
    """Half of the genes at random, the others those of the best; of the static default while nothing was measured."""
    ranked = past.ranked()
    centre = ranked[0].candidate.genome if ranked else past.space.encode(past.space.defaults)
    parents = tuple(trial.candidate.number for trial in ranked[:1])
    while True:
        yield Proposal(past.space.mutate(centre, random, _AROUND), Origin.RANDOM, parents)


def _mutant(trial: Trial, space: Space, random: Random, rate: float) -> Proposal:
    parent = trial.candidate
    return Proposal(space.mutate(parent.genome, random, rate), Origin.MUTATED, (parent.number,))


def _child(pool: Sequence[Trial], space: Space, random: Random, parameters: GeneticParameters) -> Proposal:
    chosen = _chosen(pool, parameters.selection, random)
    if random.random() >= parameters.crossover:
        return _mutant(chosen[0], space, random, parameters.mutation)
    parents = [trial.candidate for trial in chosen]
    child = space.cross([parent.genome for parent in parents], random)
    numbers = tuple(parent.number for parent in parents)
    return Proposal(space.mutate(child, random, parameters.mutation), Origin.CROSSED, numbers)


def _chosen(pool: Sequence[Trial], selection: Selection, random: Random) -> list[Trial]:
    """Three parents; the same may be drawn again, as in the original."""
    match selection:
        case Selection.ROULETTE:
            # What a user makes small may be negative, or nothing.
            least = min(trial.cost for trial in pool)
            above = 1e-9 - least if least <= 0 else 0.0
            chances = [1e-6 / (trial.cost + above) for trial in pool]
        case Selection.RANK:
            chances = [float(len(pool) - rank) for rank in range(len(pool))]
        case _:
            assert_never(selection)
    return random.choices(pool, chances, k=_PARENTS)


def genetic_search(
    space: Space,
    random: Random,
    seeds: Iterable[Options] = (),
    parameters: GeneticParameters = DEFAULT,
    first: int | None = None,
) -> Generations:
    """Seeds and random candidates, then generations of children."""
    begin = seeded(parameters.population if first is None else first, seeds, propose_random)
    return Generations(space, random, begin, (genetic_breeder(parameters),))
