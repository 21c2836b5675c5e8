"""``ByteDots``: a sum of products of bytes whose steps are taken four at a time, for the proof of its values."""

from __future__ import annotations

from tc.base.frozen import frozen

# Bytes of a word.
WORD = 4
# What flipping the highest bit of a byte adds to its value, or takes from it.
FLIPPED = 128
# A word of ones.
ONES = 0x01010101


@frozen
class ByteDots:
    """The statement called ``name``: ``iterator`` counted its steps, and ``words`` counts four of them at once.

    ``copies``: by operand, the tensor of words that is read in its place.  ``flipped``: the operand of whose bytes the
    highest bit is flipped, so that one is unsigned and the other one signed; ``sums``: the tensor with the sums of the
    other operand's bytes, by which that changes the result; None where neither is flipped.
    """

    name: str
    iterator: str
    words: str
    copies: tuple[tuple[str, str], ...]
    flipped: str | None = None
    sums: str | None = None

    def __str__(self) -> str:
        copies = ", ".join(f"{copy} for {operand}" for operand, copy in self.copies)
        return f"{self.name}: {copies}, four steps of {self.iterator} at a time"
