"""Temporal reuse: which loops around a reduction read the same operands again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tc.language.program.program import Expression, iterators_in


def product_loops(reads: Iterable[tuple[Expression, ...]], kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of loops of which each has an operand that only the other one goes along, as in a product of matrices.

    ``reads``: the subscripts of every operand.  ``kept``: the loops, by iterator.
    """
    uses = [iterators_in(subscripts) & frozenset(kept) for subscripts in reads]
    for number, first in enumerate(kept):
        for second in kept[number + 1 :]:
            if any(first in use and second not in use for use in uses) and any(
                second in use and first not in use for use in uses
            ):
                yield first, second
