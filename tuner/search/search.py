"""The interface of searches: ask for candidates, tell their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from tc.base.frozen import frozen
from tc.targets.options import Options
from tc.tuner.space.genes import Genome
from tc.tuner.trial.trial_outcome import Measured, Outcome


class Origin(Enum):
    """How a candidate came about."""

    SEED = "seed"  # given: the static default first, then what the search was to start from, then cached winners
    RANDOM = "random"
    CROSSED = "crossed"  # of three parents, perhaps mutated after
    MUTATED = "mutated"  # of one
    REFINED = "refined"  # a neighbour of one


@frozen
class Candidate:
    """Options to try.  ``number`` counts from 0 through the whole search; ``parents`` are numbers, too."""

    number: int
    generation: int
    genome: Genome
    options: Options
    origin: Origin
    parents: tuple[int, ...] = ()


@frozen
class Trial:
    """A candidate, and what came of it."""

    candidate: Candidate
    outcome: Outcome

    @property
    def seconds(self) -> float:
        """Of one call; infinite for a failure."""
        return self.outcome.seconds if isinstance(self.outcome, Measured) else float("inf")

    @property
    def cost(self) -> float:
        """What the search makes small; infinite for a failure."""
        if isinstance(self.outcome, Measured) and self.outcome.cost is not None:
            return self.outcome.cost
        return self.seconds


class Search(Protocol):
    """A search.  What it asks for depends on its seed, its first options and what it was told, and on nothing else.

    So the first candidates of a long search are those of a short one, and a search that was interrupted goes on where
    it was once it is told again what came of them.
    """

    def ask(self) -> tuple[Candidate, ...]:
        """The next generation; empty when there is nothing left to try.

        Never options that were asked for before.  RuntimeError while outcomes of the last generation are missing.
        """
        ...

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """What came of the next candidates, in the order in which they were asked for.

        A generation may be told in several parts.  ValueError for more outcomes than there are candidates.
        """
        ...

    @property
    def trials(self) -> Sequence[Trial]:
        """All that was told, in order."""
        ...

    @property
    def best(self) -> Trial | None:
        """The quickest trial so far, or what costs least, the first of equals; None while none was measured."""
        ...
