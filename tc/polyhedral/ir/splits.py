"""``Split``: what splitting a reduction did to its statement, for the proof that it did no more."""

from __future__ import annotations

from collections.abc import Mapping

from tc.base.frozen import frozen
from tc.language.program.program import Expression


@frozen
class Split:
    """What was done to a statement: what its iterators are in the statement that makes the partial results.

    ``values``: of those that are no longer there.  ``total``: the name of the statement that combines them.  ``part``:
    the iterator that counts the partial results.
    """

    statement: str
    values: Mapping[str, Expression]
    total: str
    part: str


@frozen
class Share:
    """How a scatter is shared.

    By ``owners`` of ranges of elements, in ``parts`` with results of their own, or by ``atomic`` updates in any order,
    of the elements or of those of parts.
    """

    statement: str
    owners: int = 1
    parts: int = 1
    atomic: bool = False

    @property
    def shares(self) -> bool:
        """Whether there is more to do than to run it in a row."""
        return self.atomic or self.owners > 1 or self.parts > 1

    def __str__(self) -> str:
        if self.atomic and self.parts > 1:
            return f"{self.statement}: atomic updates, in any order, of {self.parts} parts with some of the terms each"
        if self.atomic:
            return f"{self.statement}: atomic updates, in any order"
        if self.parts > 1:
            return f"{self.statement}: {self.parts} parts with some of the terms each, combined in this order"
        return f"{self.statement}: {self.owners} owners of ranges of its elements, who look at all indices"


@frozen
class Shared:
    """What was done to a scatter, as ``Split`` says; without ``values`` it has owners, unless it is ``atomic``."""

    statement: str
    values: Mapping[str, Expression]
    atomic: bool = False
