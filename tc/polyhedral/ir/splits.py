"""``Split``: what splitting a reduction did to its statement, for the proof that it did no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tc.language.program.program import Expression


@dataclass(frozen=True, slots=True)
class Split:
    """What was done to a statement: what its iterators are in the statement that makes the partial results.

    ``values``: of those that are no longer there.  ``total``: the name of the statement that combines them.  ``part``:
    the iterator that counts the partial results.
    """

    statement: str
    values: Mapping[str, Expression]
    total: str
    part: str


@dataclass(frozen=True, slots=True)
class Share:
    """How a scatter is shared: by ``owners`` of ranges of elements, or in ``parts`` with results of their own."""

    statement: str
    owners: int = 1
    parts: int = 1

    def __str__(self) -> str:
        if self.parts > 1:
            return f"{self.statement}: {self.parts} parts with some of the terms each, combined in this order"
        return f"{self.statement}: {self.owners} owners of ranges of its elements, who look at all indices"


@dataclass(frozen=True, slots=True)
class Shared:
    """What was done to a scatter, as ``Split`` says; without ``values`` it has owners."""

    statement: str
    values: Mapping[str, Expression]
