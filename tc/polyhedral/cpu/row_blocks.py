"""Sums of columns beside what goes by rows: in blocks of rows, which are still in the cache when both read them.

A layer norm's backward pass reads its input and an adjoint by rows, for the gradient of the input, and by columns, for
those of the scale and the shift.  In blocks of rows, each is read from memory once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from tc.language.program.program import IteratorReference, Program, Read, Reduction, Statement, iterators_in
from tc.language.program.specialization import Specialization
from tc.language.program.within import ranges_in
from tc.language.program.written_elements import is_scatter, written_iterators
from tc.polyhedral.analysis.strides import stride
from tc.polyhedral.schedule.split import Walk, reads_of, walk_of

# Rows of a block at most: of a power of two, sums of blocks are soon added up; and at least, for these to be few.
_MOST_ROWS: Final = 32
_LEAST_ROWS: Final = 8
# Bytes of a block, which stay in a second-level cache, and of all that is read, which does not.
_BLOCK_BYTES: Final = 1 << 19
_WORTH_BYTES: Final = 1 << 21


def row_blocks(specialization: Specialization) -> Mapping[int, frozenset[str]]:
    """The statements whose sums are split into blocks of rows, by the number of blocks."""
    found: dict[int, frozenset[str]] = {}
    for statement in specialization.program.statements:
        blocks = _blocks(statement, specialization)
        if blocks > 1:
            found[blocks] = found.get(blocks, frozenset()) | {statement.name}
    return found


def _blocks(statement: Statement, specialization: Specialization) -> int:
    """In how many blocks of rows the terms of a sum are; 1 where these are no columns that rows beside it read."""
    rows = _rows(statement, specialization)
    if rows is None:
        return 1
    layouts = specialization.layouts
    columns = {iterator.name for iterator in written_iterators(statement)}
    # Of products, whose operands are read again and again, tiles make more.
    streamed = {
        read
        for read in reads_of(statement)
        if IteratorReference(rows.loops[0][0].name) in read.subscripts
        and columns < iterators_in(read.subscripts)
        and any(stride(read.subscripts, layouts[read.tensor], name) == 1 for name in columns)
    }
    if not any(_is_read_by_rows(read, rows, statement, specialization.program) for read in streamed):
        return 1
    total = sum(math.prod(layouts[r.tensor].shape) * layouts[r.tensor].type.itemsize for r in streamed)
    if total < _WORTH_BYTES:
        return 1
    size = min(_MOST_ROWS, _BLOCK_BYTES * rows.iterations // total)
    return -(-rows.iterations // size) if size >= _LEAST_ROWS else 1


def _rows(statement: Statement, specialization: Specialization) -> Walk | None:
    """The only loop that a sum of floating numbers is reduced over; None of other statements."""
    written = written_iterators(statement)
    reduced = [iterator for iterator in statement.iterators if iterator not in written]
    sums = statement.reduction is Reduction.ADD and statement.initialize and statement.value.type.is_floating
    if not sums or statement.blocks or is_scatter(statement) or len(reduced) != 1 or ranges_in(statement.value):
        return None
    return walk_of(statement, reduced[0], specialization.layouts)


def _is_read_by_rows(read: Read, rows: Walk, sums: Statement, program: Program) -> bool:
    """Whether a statement that does not wait for the sums reads the same elements, and writes rows with them."""
    dimension = read.subscripts.index(IteratorReference(rows.loops[0][0].name))
    waiting = {sums.target}
    for statement in program.statements:
        own = tuple(reads_of(statement))
        if any(other.tensor in waiting for other in own):
            waiting.add(statement.target)
        elif statement.target not in waiting and not statement.blocks and not is_scatter(statement):
            places = (other.subscripts[dimension] for other in own if other.tensor == read.tensor)
            if any(isinstance(row, IteratorReference) and row in statement.subscripts for row in places):
                return True
    return False
