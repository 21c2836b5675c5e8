"""Which tensors a statement reads, and which statements results depend on."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence

from tc.language.program.program import Read, Statement, reads_in


def all_reads(statement: Statement) -> Iterator[Read]:
    """Every read of a statement: of its value, of its subscripts, of its iteration domain."""
    ends = [end for iterator in statement.iterators for end in (iterator.begin, iterator.end)]
    if statement.owned is not None:
        ends += [statement.owned.begin, statement.owned.end]
    listed = (*statement.required, *statement.distinct, *statement.counts)
    for expression in (statement.value, *statement.subscripts, *statement.conditions, *ends, *listed):
        yield from reads_in(expression)


def read_by(statement: Statement) -> set[str]:
    """The tensors that a statement reads."""
    return {read.tensor for read in all_reads(statement)}


def needed_for(statements: Sequence[Statement], results: Iterable[str], known: Collection[str] = ()) -> list[Statement]:
    """The statements that results depend on; ``known``: tensors that need none."""
    needed = set(results) - set(known)
    kept: list[Statement] = []
    for block, group in itertools.groupby(reversed(statements), lambda statement: statement.blocks[:1]):
        own = list(group)
        while True:  # steps of a block depend on those before them, in any order
            before = len(needed)
            found = [statement for statement in own if statement.target in needed] if block else []
            for statement in found:
                needed |= read_by(statement) - set(known)
            if len(needed) == before:
                break
        for statement in own:
            if statement.target in needed:
                kept.append(statement)
                needed |= read_by(statement) - set(known)
    return kept[::-1]
