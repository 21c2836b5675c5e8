"""Neighbours that a thread computes one after the other and stores at once, as the printer has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tc.language.program.program import Read, walk
from tc.language.program.specialization import Layout
from tc.polyhedral.ir.loops import Copy, IndexLiteral, Instance, Loop, LoopKind, StatementBody

# Bytes of one store.
_PIECES: Final = (4, 8, 16)


def stores_at_once(loop: Loop, bodies: Mapping[str, StatementBody], layouts: Mapping[str, Layout]) -> bool:
    """Whether an unrolled loop computes one value in each iteration, and all of them fill one store."""
    match loop:
        case Loop(lower=IndexLiteral(0), upper=IndexLiteral(last), step=1, body=Instance(statement=name)):
            body = bodies[name]
        case _:
            return False
    plain = body.reduction is None and body.owned is None and not body.counts and not isinstance(loop.body, Copy)
    again = any(isinstance(part, Read) and part.tensor == body.target for part in walk(body.value))
    size = (last + 1) * layouts[body.target].type.itemsize
    return loop.kind is LoopKind.UNROLLED and plain and not again and last > 0 and size in _PIECES
