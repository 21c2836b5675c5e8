"""Words of four bytes that lie side by side in memory, which are loaded at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tc.language.program.program import Call, Cast, Read
from tc.polyhedral.analysis.offsets import LinearForm

# Functions that make words of bytes.
_WORDS: Final = frozenset({"byte_word", "byte_word_flipped"})


def bytes_side_by_side(word: Call, place: Callable[[Read], LinearForm | None]) -> Read | None:
    """The first byte of a word where all are elements that follow each other; ``place``: where an element is."""
    bytes = word.arguments if word.function in _WORDS else ()
    reads = [own.operand for own in bytes if isinstance(own, Cast) and isinstance(own.operand, Read)]
    if (
        not reads
        or len(reads) < len(bytes)
        or any(read.type.itemsize != 1 or read.tensor != reads[0].tensor for read in reads)
    ):
        return None
    first, *others = map(place, reads)
    following = (
        first is not None and own is not None and own.plus(first, -1) == LinearForm(number)
        for number, own in enumerate(others, 1)
    )
    return reads[0] if all(following) else None
