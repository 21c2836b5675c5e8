"""In what order the oracle runs statements: those of a block again and again, for each of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from tc.language.program.program import Literal, Program, Statement
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
