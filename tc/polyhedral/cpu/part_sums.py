"""Reductions to few results in parts: of all elements to one, say, where no loop over results keeps cores busy.

Each part is a run of iterations, and the results of the parts are combined in their order.  How many parts there are
depends on the sizes alone, so that the bits are the same on every machine, with any number of threads.
"""

from __future__ import annotations

import math
from typing import Final

from tc.language.program.program import Statement, iterators_in, reads_in
from tc.language.program.specialization import Specialization
from tc.language.program.within import ranges_in
from tc.language.program.written_elements import is_scatter, written_iterators
from tc.polyhedral.schedule.scatter import length_of

# Fewer results than this do not keep cores busy.
_FEW: Final = 8
# Nor do fewer columns than this, whose rows lie side by side in memory: each core would read a piece of every row.
_FEW_COLUMNS: Final = 128
# Rows of columns that are worth parts.
_MANY_ROWS: Final = 2048
# Iterations that are worth a parallel loop, of all parts together.
_WORTH: Final = 1 << 17
PARTS: Final = 32


def part_sums(specialization: Specialization) -> frozenset[str]:
    """The statements that are reduced in ``PARTS`` parts."""
    return frozenset(s.name for s in specialization.program.statements if _is_alone(s, specialization))


def _is_alone(statement: Statement, specialization: Specialization) -> bool:
    plain = statement.reduction is not None and statement.initialize and not statement.blocks
    if not plain or is_scatter(statement) or ranges_in(statement.value) or statement.conditions:
        return False
    lengths = {own.name: length_of(own) for own in statement.iterators}
    kept = {own.name for own in written_iterators(statement)}
    written = math.prod(lengths[name] or 0 for name in kept)
    reduced = [length or 0 for name, length in lengths.items() if name not in kept]
    longest = max(reduced, default=0)
    if longest <= PARTS or written * math.prod(reduced) < _WORTH:
        return False
    return written < _FEW or (
        written < _FEW_COLUMNS and longest >= _MANY_ROWS and _has_columns(statement, kept, specialization)
    )


def _has_columns(statement: Statement, kept: set[str], specialization: Specialization) -> bool:
    """Whether results lie side by side in the rows of what a statement reads most of."""
    read = max(reads_in(statement.value), key=lambda own: len(iterators_in(own.subscripts)), default=None)
    if read is None:
        return False
    strides = specialization.layouts[read.tensor].strides
    along = iterators_in(own for own, step in zip(read.subscripts, strides, strict=True) if step == 1)
    return bool(along) and along <= kept
