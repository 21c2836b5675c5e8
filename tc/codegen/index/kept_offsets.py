"""Offsets of what threads copy for a tile, of which the part that all tiles have in common is computed once.

A thread finds the row and the column of an element by division.  Compilers keep quotients outside of the loop over
tiles, but add them up for each tile, which takes more instructions and registers than to keep the sums.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral, IndexOperation, IndexOperator, Loop, variables

_DIVISIONS: Final = frozenset(
    {IndexOperator.FLOOR_DIVIDE, IndexOperator.NONNEGATIVE_DIVIDE, IndexOperator.NONNEGATIVE_REMAINDER}
)


@frozen
class Kept:
    """A variable with a part of an offset, or an array of them with one for each iteration of a loop; what is left."""

    name: str
    loop: Loop | None
    left: LinearForm


class KeptOffsets:
    """The parts of offsets that are the same in all iterations of one loop; ``outside``: iterators around it."""

    def __init__(self, outside: Collection[str]) -> None:
        self._outside: Final = frozenset(outside)
        self._names: Final[dict[tuple[IndexExpression, Loop | None], str]] = {}

    def split(self, form: LinearForm, copying: Sequence[Loop]) -> Kept | None:
        """What is kept of a form; None where there is nothing worth it.

        ``copying``: the unrolled loops around the copy.
        """
        known = self._outside | {loop.iterator for loop in copying}
        fixed = {term: factor for term, factor in form.factors.items() if variables(term) <= known}
        own = [loop for loop in copying if any(loop.iterator in variables(term) for term in fixed)]
        if not any(map(_divides, fixed)) or len(own) > 1 or not all(map(_counts_from_zero, own)):
            return None
        loop = own[0] if own else None
        name = self._names.setdefault((LinearForm(0, fixed).expression(), loop), f"kept{len(self._names)}")
        left = {term: factor for term, factor in form.factors.items() if term not in fixed}
        return Kept(name, loop, LinearForm(form.constant, left))

    def computed(self) -> Iterator[tuple[str, IndexExpression, Loop | None]]:
        """The variables so far, and what each is computed from."""
        return ((name, value, loop) for (value, loop), name in self._names.items())


def _counts_from_zero(loop: Loop) -> bool:
    return loop.lower == IndexLiteral(0) and isinstance(loop.upper, IndexLiteral) and loop.step == 1


def _divides(term: IndexExpression) -> bool:
    """Whether a number is divided in it, by other than a power of two."""
    match term:
        case IndexOperation(operator, (dividend, IndexLiteral(divisor))) if operator in _DIVISIONS:
            return divisor & (divisor - 1) != 0 or _divides(dividend)
        case IndexOperation(_, operands):
            return any(map(_divides, operands))
        case _:
            return False
