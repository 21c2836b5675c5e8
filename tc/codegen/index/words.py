"""Words of elements that lie side by side in memory, which are loaded at once."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from tc.language.program.program import Call, Cast, Read
from tc.polyhedral.analysis.offsets import LinearForm

# Functions that make words, and the bytes of what they are made of.
_WORDS: Final = MappingProxyType({"byte_word": 1, "byte_word_flipped": 1, "pair_word": 2, "short_word": 2})


def side_by_side(word: Call, place: Callable[[Read], LinearForm | None]) -> Read | None:
    """The first part of a word where all are elements that follow each other; ``place``: where an element is."""
    parts = word.arguments if word.function in _WORDS else ()
    reads = [own.operand for own in parts if isinstance(own, Cast) and isinstance(own.operand, Read)]
    if (
        not reads
        or len(reads) < len(parts)
        or any(read.type.itemsize != _WORDS[word.function] or read.tensor != reads[0].tensor for read in reads)
    ):
        return None
    first, *others = map(place, reads)
    following = (
        first is not None and own is not None and own.plus(first, -1) == LinearForm(number)
        for number, own in enumerate(others, 1)
    )
    return reads[0] if all(following) else None
