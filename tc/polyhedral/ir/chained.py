"""Chains of two products of matrices, in which what lies between them is done row by row."""

from __future__ import annotations

from enum import Enum
from typing import Final

from tc.base.frozen import frozen

# Of an instruction for halves, and lanes that share a row of its sums.
STEPS: Final = 16
QUADS: Final = 4
# Rows and keys of a tile, and steps of the first product whose operands lie in shared memory at a time.
ROWS: Final = 64
KEYS: Final = 64
AT_A_TIME: Final = 128


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


@frozen
class Chain:
    """Statements that follow each other, in their order.

    The first ``around`` subscripts of what they write are the same for all that belongs together, the last of these
    counts rows.  ``rows``, ``keys``, ``columns``: how many there are; ``steps``: of the first product.
    """

    links: tuple[Link, ...]
    around: int
    rows: int
    keys: int
    columns: int
    steps: int

    @property
    def phases(self) -> range:
        """Of all links."""
        return range(max(link.phase for link in self.links) + 1)

    @property
    def is_in_whole_steps(self) -> bool:
        """Whether the first product has whole instructions, so that no more of its operands is read than there is."""
        return self.steps % STEPS == 0

    @property
    def reductions(self) -> frozenset[str]:
        """The statements that reduce to one number for each row."""
        return frozenset(link.statement for link in self.links if link.part is Part.REDUCTION)
