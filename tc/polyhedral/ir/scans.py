"""What became of reductions whose terms grow from element to element, for the proof that they are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tc.base.frozen import frozen
from tc.language.program.program import Expression


@frozen
class Blocks:
    """A scan in blocks, each of which goes on from what all blocks before it have.

    ``partials``: the tensor of what each block has by itself, which is cleared by the scan's ``clear``.  ``total``: the
    statement that adds it up.  ``before``: the one that combines that of all blocks before one, into its carry.
    """

    partials: str
    total: str
    before: str


@frozen
class Scan:
    """A statement that is computed as a scan: each of its results goes on from the one before.

    ``iterator``: of the statement, along which its terms grow; ``backward``: from the last of its values to the first.
    ``place``: its value in the statement that stores the results.  ``values``: those of the reduced iterators in the
    statement that adds the terms of one step; the others keep their names.  ``clear``, ``first``, ``add`` and
    ``store``: the statements that stand for it, by name; ``first`` adds what the first element has, where that is not
    one step like the others.
    """

    statement: str
    iterator: str
    place: Expression
    values: Mapping[str, Expression]
    carry: str
    clear: str
    first: str | None
    add: str
    store: str
    backward: bool
    blocks: Blocks | None = None

    def __str__(self) -> str:
        direction = ", from its last element to its first" if self.backward else ""
        blocks = "" if self.blocks is None else " in blocks"
        return (
            f"{self.statement} is a scan{blocks} along {self.iterator}{direction}; "
            f"{self.carry} is carried from step to step"
        )


@frozen
class StepSums:
    """A statement in whose steps several terms are added, which are reduced to one before.

    ``iterator``: of the statement, along which its terms grow.  ``values``: those of reduced iterators in ``each``; the
    others keep their names.  ``sums``: the tensor of what each step adds; ``each`` and ``total``: the statements that
    compute it, and reduce it over the steps so far, by name.
    """

    statement: str
    iterator: str
    values: Mapping[str, Expression]
    sums: str
    each: str
    total: str

    def __str__(self) -> str:
        return f"{self.statement} reduces what each step along {self.iterator} adds, {self.sums}"


# What stands for a statement.
Grown: TypeAlias = Scan | StepSums
