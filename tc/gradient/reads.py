"""Which tensors a statement reads, and which statements results depend on."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence

from tc.language.algebra.extents import named_extent
from tc.language.program.program import Expression, Read, SizeReference, Statement, reads_in, walk


def expressions_of(statement: Statement) -> tuple[Expression, ...]:
    """The value, the subscripts, and what the iteration domain is given by."""
    ends = [end for iterator in statement.iterators for end in (iterator.begin, iterator.end)]
    if statement.owned is not None:
        ends += [statement.owned.begin, statement.owned.end]
    listed = (*statement.required, *statement.distinct, *statement.counts)
    return (statement.value, *statement.subscripts, *statement.conditions, *ends, *listed)


def all_reads(statement: Statement) -> Iterator[Read]:
    """Every read of a statement: of its value, of its subscripts, of its iteration domain."""
    return (read for expression in expressions_of(statement) for read in reads_in(expression))


def read_by(statement: Statement) -> set[str]:
    """The tensors that a statement reads."""
    return {read.tensor for read in all_reads(statement)}


def _needed_by(statement: Statement) -> set[str]:
    return read_by(statement) | named_by(expressions_of(statement))


def named_by(expressions: Iterable[Expression]) -> set[str]:
    """The tensors whose extents are named, as in ``T.0``."""
    sizes = (part for e in expressions for part in walk(e) if isinstance(part, SizeReference))
    return {found[0] for found in map(named_extent, sizes) if found is not None}


def needed_for(statements: Sequence[Statement], results: Iterable[str], known: Collection[str] = ()) -> list[Statement]:
    """The statements that results depend on, also by extents that they name; ``known``: tensors that need none."""
    needed = set(results) - set(known)
    kept: list[Statement] = []
    for block, group in itertools.groupby(reversed(statements), lambda statement: statement.blocks[:1]):
        own = list(group)
        while True:  # steps of a block depend on those before them, in any order
            before = len(needed)
            found = [statement for statement in own if statement.target in needed] if block else []
            for statement in found:
                needed |= _needed_by(statement) - set(known)
            if len(needed) == before:
                break
        for statement in own:
            if statement.target in needed:
                kept.append(statement)
                needed |= _needed_by(statement) - set(known)
    return kept[::-1]
