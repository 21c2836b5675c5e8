"""Rows that are read again once something is known of them: those that are normalized."""

from __future__ import annotations

import math
from typing import Final

from tc.language.program.program import Read, Role, Statement, iterators_in
from tc.language.program.specialization import Specialization
from tc.language.program.written_elements import written_iterators
from tc.polyhedral.analysis.strides import stride
from tc.polyhedral.schedule.scatter import length_of
from tc.polyhedral.schedule.split import reads_of
from tc.targets.machine import GpuMachine

# Words of a row that each thread holds in registers easily, and at most.
_FEW: Final = 32
_MOST: Final = 64


def row_threads(statement: Statement, length: int, specialization: Specialization, machine: GpuMachine) -> int:
    """The threads of a block for each row of so many elements that a reduction goes through: the usual ones, or more
    where the row is read again, and stays in their registers then.

    Best, they have as many elements each, and what is read beside an element is the same in all threads.
    """
    usual, most = machine.block_threads, machine.most_threads
    again = [
        (own, read)
        for own in specialization.program.statements
        for read in reads_of(own)
        if own.reduction is None and read.tensor in {read.tensor for read in reads_of(statement)}
    ]
    if not again:
        return usual
    words = max(1, *(specialization.layouts[read.tensor].type.itemsize // 4 for _, read in again))
    wished = max(1, length * words // _FEW)
    threads = min(most, 1 << (wished - 1).bit_length())
    if threads <= usual:
        return usual
    found = (_turn(own, read, length, specialization) for own, read in again)
    turns = [length, *(turn for turn in found if turn > 1)]
    for lengths in (turns, turns[:1]):
        even = [
            count
            for count in range(usual + machine.warp, most + 1, machine.warp)
            if all(length % count == 0 for length in lengths) and length * words <= _MOST * count
        ]
        if even:
            return min(even, key=lambda count: (abs(math.log2(count / threads)), -count))
    return threads


def _turn(statement: Statement, row: Read, row_length: int, specialization: Specialization) -> int:
    """After how many elements of a row something changes that a statement reads beside them; 1 where it always does."""
    steps = {i.name: stride(row.subscripts, specialization.layouts[row.tensor], i.name) for i in statement.iterators}
    along = {name for name, step in steps.items() if step is not None and 0 < step < row_length}
    uses = [iterators_in(read.subscripts) & along for read in reads_of(statement)]
    changing = frozenset[str]().union(*(own for own in uses if own != along))
    length = 1
    for iterator in sorted((i for i in statement.iterators if i.name in along), key=lambda i: steps[i.name] or 0):
        if iterator.name in changing:
            break
        length *= length_of(iterator) or 1
    return length


def reread_bytes(specialization: Specialization) -> int:
    """Of the largest row that one statement reduces, and one that reduces nothing reads again; 0 without.

    A row is what an input has in the dimensions that no result of the reduction depends on.
    """
    program, most = specialization.program, 0
    if specialization.signature.symbolic:
        return 0
    again = {read.tensor for own in program.statements if own.reduction is None for read in reads_of(own)}
    for statement in program.statements:
        if statement.reduction is None or statement.blocks:
            continue
        kept = {iterator.name for iterator in written_iterators(statement)}
        for read in reads_of(statement):
            if read.tensor not in again or program.tensor(read.tensor).role is not Role.INPUT:
                continue
            layout = specialization.layouts[read.tensor]
            sides = zip(layout.shape, read.subscripts, strict=True)
            row = math.prod(extent for extent, subscript in sides if not iterators_in((subscript,)) & kept)
            most = max(most, row * layout.type.itemsize)
    return most
