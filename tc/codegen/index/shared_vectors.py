"""Vectors of operands that rows of an unrolled register tile share, each in a register of its own.

The rows of a tile multiply the same vector by numbers of their own.  Where a processor has few vector registers, GCC
unrolls the taps of a window, keeps in registers what neighbouring taps share, and makes the vector an operand in memory
of every multiply-add: eighteen loads for twelve multiply-adds, of which a cycle has two each.  A vector that an empty
``asm`` may have changed is no element of memory any more.  Convolutions of 128 filters by 1x3 took 1.01 ms of one core
(Zen 3), and take 0.64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tc.base.frozen import frozen
from tc.codegen.text.fragment import Fragment, named

# So many hold a tile, and what neighbouring taps of a window share, too.
ENOUGH_REGISTERS: Final = 32
# Loops of so many iterations at most are written out by GCC.
WRITTEN_OUT: Final = 16


@frozen
class SharedVector:
    """A vector of a type in a variable, and what loads it."""

    type: Fragment
    name: Fragment
    loaded: Fragment


class SharedVectors:
    """Those that are the same for all iterations of one loop over rows.

    ``row``: the iterator of the loop.  ``room``: for so many vectors.  ``numbers`` tell the names apart.
    """

    def __init__(self, row: str, room: int, numbers: Iterator[int]) -> None:
        self.row: Final = row
        self._room: Final = room
        self._numbers: Final = numbers
        self._found: Final[dict[Fragment, SharedVector]] = {}

    def name(self, type: Fragment, loaded: Fragment) -> Fragment:
        """The variable of a vector; what loads it, where there is no room."""
        if loaded not in self._found and len(self._found) < self._room:
            self._found[loaded] = SharedVector(type, named(f"vector{next(self._numbers)}"), loaded)
        return self._found[loaded].name if loaded in self._found else loaded

    def loaded(self) -> Iterator[SharedVector]:
        """The vectors so far."""
        return iter(self._found.values())
