"""``Scan``: what became of a reduction whose terms grow from element to element, for the proof that it is the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tc.language.program.program import Expression


@dataclass(frozen=True, slots=True)
class Blocks:
    """A scan in blocks, each of which goes on from what all blocks before it have.

    ``partials``: the tensor of what each block has by itself, which is cleared by the scan's ``clear``.  ``total``: the
    statement that adds it up.  ``before``: the one that combines that of all blocks before one, into its carry.
    """

    partials: str
    total: str
    before: str


@dataclass(frozen=True, slots=True)
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
