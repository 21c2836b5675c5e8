"""Halves that are held in float32: temporaries that hold a reduction, and what is computed from them.

By promotion, and so for the types of results, they are halves like any others.  A temporary of halves is held in
float32 if a reducing statement writes it, or if a value written to it is float32 because it reads a tensor that is.
What is written there is computed in float32 from its start; a result rounds what it stores.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TypeAlias

from tc.base.frozen import frozen
from tc.language.program.program import Program


@frozen
class Held:
    """How the caller of a definition has its arguments and results, under the names that they have in it.

    ``float32``: halves that the caller holds in float32.  ``temporaries``: results that no caller gets to see.
    """

    float32: frozenset[str] = frozenset()
    temporaries: frozenset[str] = frozenset()


AS_DECLARED = Held()

# The program of a definition for a caller that has its tensors like this; None if it is in error.
Inlining: TypeAlias = Callable[[str, Held], Program | None]


def held_in_float32(start: Set[str], halves: Set[str], written: Callable[[Set[str]], Set[str]]) -> frozenset[str]:
    """The tensors that are held in float32.

    ``start``: those that surely are.  ``halves``: all that may be.  ``written``: to which tensors float32 values are
    written if those given are held.
    """
    held = frozenset(start)
    while not held.issuperset(further := halves & written(held)):
        held |= further
    return held
