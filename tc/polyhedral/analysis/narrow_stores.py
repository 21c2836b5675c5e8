"""Neighbours of less than a word, such as halves, that a thread computes one after the other and stores at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tc.language.program.program import Read, walk
from tc.language.program.specialization import Layout
from tc.polyhedral.ir.loops import Copy, IndexLiteral, Instance, Loop, LoopKind, StatementBody

_WORD: Final = 4
# Of one store.
_PIECES: Final = (4, 8, 16)


def narrow_store(loop: Loop, bodies: Mapping[str, StatementBody], layouts: Mapping[str, Layout]) -> Instance | None:
    """What an unrolled loop runs if it stores a value of less than a word in each of so many iterations that they fill
    words.
    """
    match loop:
        case Loop(
            lower=IndexLiteral(0), upper=IndexLiteral(last), step=1, kind=LoopKind.UNROLLED, body=Instance() as own
        ):
            body = bodies[own.statement]
        case _:
            return None
    size = layouts[body.target].type.itemsize
    plain = body.reduction is None and body.owned is None and not body.counts and not isinstance(own, Copy)
    again = any(isinstance(part, Read) and part.tensor == body.target for part in walk(body.value))
    return own if plain and not again and size < _WORD and (last + 1) * size in _PIECES else None
