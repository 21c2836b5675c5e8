"""For how long the oracle keeps a tensor, and for how long anybody asks for the bounds of its elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tc.language.program.program import Expression, Program, Read, Role, Statement, walk
from tc.reference.order import block_ranges


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Numbers of statements.  ``first``: who uses it first.  ``last``: who uses it last; all of them, for a result.

    ``bounds``: behind it, the bounds of the elements are not used; -1 if they never are.  What a statement of a block
    uses is used from the first to the last of the outermost one around it.
    """

    first: int
    last: int
    bounds: int


def lifetimes(
    program: Program, *, bounds: bool, temporaries: bool = False, parts: frozenset[str] = frozenset()
) -> dict[str, Lifetime]:
    """Of every tensor.  ``bounds``: those of results are asked for; ``temporaries``: these are results, too.

    ``parts``: temporaries that are computed where they are read: what they are computed from is used there.
    """
    count = len(program.statements)
    kept = {*program.results, *(t.name for t in program.tensors if temporaries and t.role is Role.TEMPORARY)}
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    read: dict[str, int] = {}
    behind: dict[str, set[str]] = {name: set() for name in parts}
    ranges = block_ranges(program)
    for number, statement in enumerate(program.statements):
        reads = {expression.tensor for expression in reads_of(statement)}
        reads = reads.union(*(behind[name] for name in reads & parts))
        if statement.target in parts:
            behind[statement.target] |= reads
        if statement.reduction is not None:
            reads.add(statement.target)  # what it held before counts
        for name in {*reads, statement.target}:
            first.setdefault(name, ranges[number].start)
            last[name] = ranges[number].stop - 1
        read.update(dict.fromkeys(reads, ranges[number].stop if statement.blocks else number))
    return {
        tensor.name: Lifetime(
            first.get(tensor.name, 0),
            count if tensor.name in kept else last.get(tensor.name, -1),
            count if bounds and tensor.name in kept else read.get(tensor.name, -1),
        )
        for tensor in program.tensors
    }


def reads_elsewhere(statement: Statement) -> bool:
    """Whether a statement reads other elements of its target than the one that it writes.

    In blocks, these are of other steps: of what a step overwrites, a copy is read (``tc.language.lower.own_copies``).
    """
    if statement.blocks:
        return False
    return any(r.tensor == statement.target and r.subscripts != statement.subscripts for r in reads_of(statement))


def reads_of(statement: Statement) -> Iterator[Read]:
    """All reads of a statement, of its conditions and ranges, too."""
    expressions: list[Expression] = [*statement.subscripts, statement.value, *statement.conditions]
    expressions += [bound for iterator in statement.iterators for bound in (iterator.begin, iterator.end)]
    yield from (part for expression in expressions for part in walk(expression) if isinstance(part, Read))
