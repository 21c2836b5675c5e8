"""In what order the oracle runs statements, and how long tensors are needed.

The statements of a block run again and again, for each of its steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from tc.base.frozen import frozen
from tc.language.program.program import Expression, Literal, Program, Read, Role, Statement, walk
from tc.reference.domain import bounds_on_box, positions
from tc.reference.expressions import Frame


def block_ranges(program: Program) -> list[range]:
    """Of every statement, the numbers of all statements of the outermost block around it; else its own."""
    found: list[range] = []
    for _, group in groupby(enumerate(program.statements), _outermost):
        numbers = [number for number, _ in group]
        found += [range(numbers[0], numbers[-1] + 1)] * len(numbers)
    return found


def _outermost(numbered: tuple[int, Statement]) -> tuple[int | None, int]:
    number, statement = numbered
    return (statement.blocks[0], 0) if statement.blocks else (None, number)


def in_order(program: Program, numbers: range) -> Iterator[Statement]:
    """Some statements as they run, each for one step of the blocks around it: their iterators have one value."""
    yield from _within(program, program.statements[numbers.start : numbers.stop], ())


def _within(program: Program, statements: Sequence[Statement], steps: tuple[int, ...]) -> Iterator[Statement]:
    depth = len(steps)
    for block, group in groupby(statements, lambda statement: statement.blocks[depth : depth + 1]):
        own = tuple(group)
        if not block:
            yield from (_at(statement, steps) for statement in own)
            continue
        iterator = own[0].iterators[depth]
        # Beyond the steps, the box does not matter: ranges of blocks depend on those around them only.
        box = tuple(range(step, step + 1) for step in (*steps, *(0 for _ in own[0].iterators[depth:])))
        frame = Frame(program, own[0], positions(own[0]), box, {}, {}, check_indices=True)
        begin, end = (bounds_on_box(bound, frame)[0] for bound in (iterator.begin, iterator.end))
        for value in range(begin, end):
            yield from _within(program, own, (*steps, value))


def _at(statement: Statement, steps: tuple[int, ...]) -> Statement:
    found = [
        replace(iterator, begin=Literal(value, iterator.begin.type), end=Literal(value + 1, iterator.begin.type))
        for iterator, value in zip(statement.sequence, steps, strict=True)
    ]
    return replace(statement, iterators=(*found, *statement.iterators[len(steps) :])) if steps else statement


# --- how long tensors are needed ---------------------------------------------------------------------------------


@frozen
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
