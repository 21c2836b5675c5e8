"""Operand packing: which operands of a reduction are worth a copy that is contiguous along the vector lanes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import islpy as isl

from tc.language.program.program import Read, iterators_in, walk
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.analysis.strides import greatest_stride
from tc.polyhedral.ir.loops import LINE_BYTES
from tc.polyhedral.ir.scop import ScopStatement

# An element that fewer instances read is not worth a copy across memory: what else there is costs less, whatever it is.
# Beyond that, the costs of tiles decide (``tc.polyhedral.cpu.tile_cost``).
_WORTH_COPYING: Final = 4
# Nor is one in the same order that fewer instances read: without it, only lines of the cache are read again.
_WORTH_MOVING: Final = 32
# The same where lanes read most of each row, in vectors of which half lie across two lines of the cache.
_WORTH_ALIGNING: Final = 192
# The most lanes of a register tile, and bytes of a first-level cache.
_LANES = 64
_CACHE = 1 << 15
_WAYS = 8
_PAGE = 1 << 12
# So many pieces in the same sets leave the second cache, too.
_MEETING = 512


def worth_packing(
    statement: ScopStatement, layouts: Mapping[str, Layout], lane: str, registers: int
) -> tuple[int, ...]:
    """Positions of the reads that can be packed and are used often enough to pay for it.

    They lie across the lanes, or their lanes are pieces of rows that lie far apart, so that they fill only some sets of
    the cache, and what else is mapped there drives them out, or pieces of short rows that begin anywhere in a line, of
    which each tile reads more lines than it uses.  ``registers``: how many of vectors there are.
    """
    if statement.body.reduction is None:
        return ()
    extents = _extents(statement)
    # Below what holds a register tile of the target, a copy of contiguous lanes is not used again.
    held = any(access.writes for access in statement.promoted)
    found: list[int] = []
    for position, read in enumerate(value_reads(statement.body)):
        steps = {
            name: greatest_stride(read.subscripts, layouts[read.tensor], name) for name in statement.body.iterators
        }
        if steps[lane] in (None, 0) or not can_pack(statement, position):
            continue
        least = _WORTH_COPYING
        if steps[lane] == 1:
            moving = None if held else _least_uses(steps, extents, layouts[read.tensor], statement, lane, registers)
            if moving is None:
                continue
            least = moving
        uses = math.prod(extents[name] for name, step in steps.items() if step == 0 and name in extents)
        if uses >= least:
            found.append(position)
    return tuple(found)


def _least_uses(
    steps: Mapping[str, int | None],
    extents: Mapping[str, int],
    layout: Layout,
    statement: ScopStatement,
    lane: str,
    registers: int,
) -> int | None:
    """How many instances must read an element, for a copy in the same order to pay; None where none does.

    The lanes of all steps of a reduction are pieces of rows, and too many for the first cache.
    """
    target = statement.body.subscripts
    reduced = [name for name in extents if not any(name in iterators_in((s,)) for s in target)]
    apart = max((abs(steps[name] or 0) for name in reduced), default=0)
    pieces = math.prod(extents[name] for name in reduced if steps[name] != 0)
    lanes, itemsize = min(extents[lane], _LANES), layout.type.itemsize
    # Pieces that lie whole pages apart are all in the same few sets, of the second cache, too.
    meet = apart * itemsize % _PAGE == 0
    if pieces * lanes * itemsize <= (_WAYS * lanes * itemsize if meet else _CACHE):
        return None
    if meet and pieces >= _MEETING:
        return min(_WORTH_MOVING, _most_rows(registers) + 1)
    if apart >= 2 * _LANES:
        return _WORTH_MOVING
    crosses = apart * itemsize > 2 * LINE_BYTES and apart * itemsize % (2 * LINE_BYTES) != 0
    return _WORTH_ALIGNING if crosses else None


def _most_rows(registers: int) -> int:
    """Of a register tile with two vectors in each row: what more rows read is fetched again."""
    return (registers - 4) // 2


def can_pack(statement: ScopStatement, position: int) -> bool:
    """Whether a read may go to a packed copy: it gathers nothing, and the statement does not write its tensor."""
    read = value_reads(statement.body)[position]
    gathers = any(isinstance(part, Read) for subscript in read.subscripts for part in walk(subscript))
    return not gathers and read.tensor != statement.body.target


def _extents(statement: ScopStatement) -> dict[str, int]:
    """Number of values of every iterator of the program's statement."""
    count = statement.domain.dim(isl.dim_type.set)
    return {
        name: int(statement.domain.dim_max_val(n).to_python()) - int(statement.domain.dim_min_val(n).to_python()) + 1
        for n, name in enumerate(statement.body.iterators[:count])
    }
