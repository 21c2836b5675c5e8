"""Chains of two products of matrices, in which what lies between them is done row by row."""

from __future__ import annotations

from enum import Enum

from tc.base.frozen import frozen


@frozen
class Recomputed:
    """``statement`` is computed once more, by ``made`` into ``tensor``, for ``reader`` and no other statement."""

    statement: str
    made: str
    tensor: str
    reader: str

    def __str__(self) -> str:
        return f"{self.statement}: computed once more for {self.reader}, by {self.made}"


class Part(Enum):
    """What a statement of a chain has for each row."""

    SCORES = "scores"  # a product of matrices: one number for each key
    KEYS = "keys"  # something for each key
    REDUCTION = "reduction"  # one number, of all keys
    ROW = "row"  # one number, of others
    SUMS = "sums"  # a product of matrices: one number for each column, a sum over keys
    COLUMNS = "columns"  # something for each column


@frozen
class Link:
    """A statement of a chain.

    ``column``: its iterator that counts keys, or columns; "" where there is none.  ``steps``: that of its own sum.
    ``phase``: how many reductions over keys, one after the other, it waits for.
    """

    statement: str
    part: Part
    phase: int
    column: str = ""
    steps: str = ""

    @property
    def goes_along_keys(self) -> bool:
        """Whether it is done key by key."""
        return self.part in (Part.SCORES, Part.KEYS, Part.REDUCTION, Part.SUMS)


@frozen
class Chain:
    """Statements that follow each other, in their order.

    The first ``around`` subscripts of what they write are the same for all that belongs together, the last of these
    counts rows.  ``rows``, ``keys``, ``columns``: how many there are.
    """

    links: tuple[Link, ...]
    around: int
    rows: int
    keys: int
    columns: int

    @property
    def phases(self) -> range:
        """Of all links."""
        return range(max(link.phase for link in self.links) + 1)

    @property
    def reductions(self) -> frozenset[str]:
        """The statements that reduce to one number for each row."""
        return frozenset(link.statement for link in self.links if link.part is Part.REDUCTION)
