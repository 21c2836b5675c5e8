"""Temporal reuse: which loops around a reduction read the same operands again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tc.language.program.program import Expression, iterators_in


def product_loops(
    reads: Collection[tuple[Expression, ...]], kept: Sequence[str], reduced: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Pairs of loops of which each has an operand that only the other one goes along, as in a product of matrices.

    There are none where an operand goes along all loops: no element of it is read again, so that reading it takes
    longer than what is done with it.  ``reads``: the subscripts of every operand.  ``kept``, ``reduced``: the loops, by
    iterator, but for those of one iteration.
    """
    every = frozenset((*kept, *reduced))
    if any(every <= iterators_in(subscripts) for subscripts in reads):
        return
    uses = [iterators_in(subscripts) & frozenset(kept) for subscripts in reads]
    for number, first in enumerate(kept):
        for second in kept[number + 1 :]:
            if any(first in use and second not in use for use in uses) and any(
                second in use and first not in use for use in uses
            ):
                yield first, second
