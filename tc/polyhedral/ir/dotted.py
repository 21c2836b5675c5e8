"""``Dots``: a sum of products whose steps are taken several at a time, as words, for the proof of its values."""

from __future__ import annotations

from typing import assert_never

from tc.base.dots import Dot
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.program.program import Call, Expression, walk

# What flipping the highest bit of a byte adds to its value, or takes from it.
FLIPPED = 128
# A word of ones.
ONES = 0x01010101


@frozen
class Word:
    """How a word of a dot product is made, and multiplied.

    ``steps``: the elements that it holds; ``elements``: their types; ``term``: the type in which they are multiplied.
    ``made``, ``made_flipped``: the functions that make a word; ``dot``: the one that multiplies two.
    """

    steps: int
    elements: tuple[ScalarType, ...]
    term: ScalarType
    made: str
    made_flipped: str
    dot: str


_BYTES = Word(
    4, (ScalarType.INT8, ScalarType.UINT8), ScalarType.INT32, "byte_word", "byte_word_flipped", dot="byte_dot"
)
_SHORTS = Word(
    2, (ScalarType.INT8, ScalarType.UINT8, ScalarType.INT16), ScalarType.INT32, "short_word", "", dot="short_dot"
)
_PAIRS = Word(2, (ScalarType.BFLOAT16,), ScalarType.FLOAT32, "pair_word", "", dot="pair_dot")


def word_of(dot: Dot) -> Word:
    """The words of a dot product."""
    match dot:
        case Dot.BYTES:
            return _BYTES
        case Dot.SHORTS:
            return _SHORTS
        case Dot.PAIRS:
            return _PAIRS
        case _:
            assert_never(dot)


def words_in(value: Expression) -> tuple[Call, ...]:
    """The words that an expression makes of elements."""
    made = {name for word in map(word_of, Dot) for name in (word.made, word.made_flipped)}
    return tuple(part for part in walk(value) if isinstance(part, Call) and part.function in made)


@frozen
class Dots:
    """The statement called ``name``: ``iterator`` counted its steps, and ``words`` counts those of a word at once.

    ``copies``: by operand, the tensor of words that is read in its place.  ``flipped``: the operand of whose bytes the
    highest bit is flipped, so that one is unsigned and the other one signed; ``sums``: the tensor with the sums of the
    other operand's bytes, by which that changes the result; None where neither is flipped.
    """

    name: str
    dot: Dot
    iterator: str
    words: str
    copies: tuple[tuple[str, str], ...]
    flipped: str | None = None
    sums: str | None = None

    @property
    def word(self) -> Word:
        """What its words are like."""
        return word_of(self.dot)

    def __str__(self) -> str:
        copies = ", ".join(f"{copy} for {operand}" for operand, copy in self.copies)
        steps = {2: "two", 4: "four"}[self.word.steps]
        return f"{self.name}: {copies}, {steps} steps of {self.iterator} at a time"
