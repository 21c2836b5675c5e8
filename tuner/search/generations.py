"""A search in generations, each bred from what is known of those before."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Final, TypeAlias

from tc.base.frozen import frozen
from tc.targets.options import Options
from tc.tuner.search.search import Candidate, Origin, Trial
from tc.tuner.space.genes import Genome
from tc.tuner.space.space import Space
from tc.tuner.trial.trial_outcome import Failed, Measured, Outcome

# So many proposals in a row that are illegal or known mean that there are hardly others (the original's bound).
_RETRIES: Final = 1000


@frozen
class Proposal:
    """A genome that may be illegal or known, how it came about, and the numbers of its parents.

    ``options``: what is tried, exactly, where the genome stands for something near; None: what it stands for.
    """

    genome: Genome
    origin: Origin
    parents: tuple[int, ...] = ()
    options: Options | None = None


@frozen
class Past:
    """What the next generation is bred from: the space, and all trials so far, in order."""

    space: Space
    trials: tuple[Trial, ...]

    def ranked(self) -> tuple[Trial, ...]:
        """The trials that were measured, those that cost least first, the earlier of equals first."""
        measured = (trial for trial in self.trials if isinstance(trial.outcome, Measured))
        return tuple(sorted(measured, key=lambda trial: (trial.cost, trial.candidate.number)))

    def latest(self) -> tuple[Trial, ...]:
        """The trials of the last generation."""
        if not self.trials:
            return ()
        last = self.trials[-1].candidate.generation
        return tuple(trial for trial in self.trials if trial.candidate.generation == last)


# Proposals without an end, or until there are no more; only as many are taken as are wanted.
Propose: TypeAlias = Callable[[Past, Random], Iterator[Proposal]]


@frozen
class Breeder:
    """How generations are bred: at most ``size`` candidates, from these proposals."""

    size: int
    propose: Propose


class Generations:
    """The ``Search`` whose first generation is bred by one breeder, and the others by some in turn.

    A breeder that has nothing new is passed over.  The search has ended when that is so for all of them.
    """

    def __init__(self, space: Space, random: Random, first: Breeder, then: Sequence[Breeder]) -> None:
        self._space = space
        self._random = random
        self._first = first
        self._turns = itertools.cycle(then)
        self._breeders = len(then)
        self._asked: list[Candidate] = []
        self._trials: list[Trial] = []
        self._known: set[Options] = set()
        self._generation = 0

    def ask(self) -> tuple[Candidate, ...]:
        """See ``Search``."""
        if len(self._trials) < len(self._asked):
            missing = len(self._asked) - len(self._trials)
            raise RuntimeError(f"tell the outcomes of the last {missing} candidates first")
        turns = itertools.islice(self._turns, self._breeders)
        breeders = (self._first,) if self._generation == 0 else ()
        for breeder in itertools.chain(breeders, turns):
            if batch := self._bred(breeder):
                self._generation += 1
                self._asked.extend(batch)
                return batch
        return ()

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """See ``Search``."""
        missing = self._asked[len(self._trials) :]
        if len(outcomes) > len(missing):
            raise ValueError(f"{len(outcomes)} outcomes of {len(missing)} candidates")
        self._trials.extend(map(Trial, missing, outcomes))

    @property
    def trials(self) -> Sequence[Trial]:
        """See ``Search``."""
        return tuple(self._trials)

    @property
    def best(self) -> Trial | None:
        """See ``Search``."""
        measured = (trial for trial in self._trials if isinstance(trial.outcome, Measured))
        return min(measured, key=lambda trial: trial.cost, default=None)

    def _bred(self, breeder: Breeder) -> tuple[Candidate, ...]:
        """New candidates, until there are enough, or hardly any new ones."""
        batch: list[Candidate] = []
        repeated = 0
        for proposal in breeder.propose(Past(self._space, tuple(self._trials)), self._random):
            options = proposal.options or self._space.decode(proposal.genome)
            if isinstance(options, Failed) or options in self._known:
                repeated += 1
                if repeated == _RETRIES:
                    break
                continue
            repeated = 0
            self._known.add(options)
            number = len(self._asked) + len(batch)
            batch.append(
                Candidate(number, self._generation, proposal.genome, options, proposal.origin, proposal.parents)
            )
            if len(batch) == breeder.size:
                break
        return tuple(batch)


def seeded(size: int, seeds: Iterable[Options], propose: Propose) -> Breeder:
    """A first generation: the static default, the seeds, and proposals up to ``size`` in all.

    All seeds are tried exactly as they are, even if they are more.
    """
    known = tuple(seeds)

    def propose_first(past: Past, random: Random) -> Iterator[Proposal]:
        for options in (past.space.defaults, *known):
            yield Proposal(past.space.encode(options), Origin.SEED, options=options)
        yield from propose(past, random)

    return Breeder(max(size, len(known) + 1), propose_first)
