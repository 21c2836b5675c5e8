"""``Case``: a problem at the sizes at which it is measured, and what it must reach."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from benchmarks.problems.problem import Problem, Sizes


class Suite(Enum):
    """``PAPER``: the kernels of *Tensor Comprehensions*, Section 7.  ``MODERN``: what networks are made of since.

    ``LANGUAGE``: what this language has beyond the original's.  ``OPERATORS``: everyday operators, with which the rules
    of targets were not developed.
    """

    PAPER = "paper"
    MODERN = "modern"
    LANGUAGE = "language"
    OPERATORS = "operators"

    @classmethod
    def kernels(cls) -> tuple[Suite, ...]:
        """All but the operators, which take as long as all others together."""
        return (cls.PAPER, cls.MODERN, cls.LANGUAGE)


@dataclass(frozen=True, slots=True)
class Case:
    """``minimum``: what the time of the best peer, divided by ours, has to reach."""

    name: str
    suite: Suite
    problem: Problem
    sizes: Sizes
    minimum: float
