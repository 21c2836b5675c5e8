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
from tc.polyhedral.ir.scop import ScopStatement

# An element that fewer instances read is not worth a copy across memory: what else there is costs less, whatever it is.
# Beyond that, the costs of tiles decide (``tc.polyhedral.cpu.tile_cost``).
_WORTH_COPYING: Final = 4
# Nor is one in the same order that fewer instances read: without it, only lines of the cache are read again.
_WORTH_MOVING: Final = 32
# The most lanes of a register tile, and bytes of a first-level cache.
_LANES = 64
_CACHE = 1 << 15
_WAYS = 8
_PAGE = 1 << 12


def worth_packing(statement: ScopStatement, layouts: Mapping[str, Layout], lane: str) -> tuple[int, ...]:
    """Positions of the reads that can be packed and are used often enough to pay for it.

    They lie across the lanes, or their lanes are pieces of rows that lie far apart, so that they fill only some sets of
    the cache, and what else is mapped there drives them out.
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
        if steps[lane] == 1 and (held or not _scatters(steps, extents, layouts[read.tensor], statement, lane)):
            continue
        uses = math.prod(extents[name] for name, step in steps.items() if step == 0 and name in extents)
        if uses >= (_WORTH_MOVING if steps[lane] == 1 else _WORTH_COPYING):
            found.append(position)
    return tuple(found)


def _scatters(
    steps: Mapping[str, int | None], extents: Mapping[str, int], layout: Layout, statement: ScopStatement, lane: str
) -> bool:
    """Whether the lanes of all steps of a reduction are short pieces of far rows, and too many for the first cache."""
    target = statement.body.subscripts
    reduced = [name for name in extents if not any(name in iterators_in((s,)) for s in target)]
    apart = max((abs(steps[name] or 0) for name in reduced), default=0)
    pieces = math.prod(extents[name] for name in reduced if steps[name] != 0)
    lanes, itemsize = min(extents[lane], _LANES), layout.type.itemsize
    # Pieces that lie whole pages apart are all in the same few sets.
    room = _WAYS * lanes * itemsize if apart * itemsize % _PAGE == 0 else _CACHE
    return apart >= 2 * _LANES and pieces * lanes * itemsize > room


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
