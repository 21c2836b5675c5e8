"""Non-temporal stores for results that are too large for the caches, a block at a time.

An ordinary store reads its cache line first, and evicts another one.  Non-temporal stores of whole lines do neither;
the lines come from a buffer that holds a block of the result and stays in the first-level cache.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.language.isl.affine import isl_name
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.box import Box
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.ir.scop import Scop, ScopStatement
from tc.polyhedral.ir.tree import Member

# Of a buffer: a quarter of a 32 KiB first-level cache, beside what is read.
PIECE_BYTES: Final = 8 << 10
# Shorter runs of contiguous elements have too many incomplete lines at their ends.
_RUN_BYTES: Final = 256


def streamed_results(scop: Scop, least: int) -> frozenset[str]:
    """The results of at least so many bytes (0: none) that one statement writes once and nothing reads."""
    found: set[str] = set()
    for buffer in scop.buffers:
        name, size = buffer.name, math.prod(buffer.layout.shape) * buffer.layout.type.itemsize
        writers = [s for s in scop.statements if s.body.target == name]
        reads = any(r.get_tuple_name(isl.dim_type.out) == isl_name(name) for s in scop.statements for r in s.reads)
        if 0 < least <= size and len(writers) == 1 and writers[0].body.reduction is None and not reads:
            found.add(name)
    return frozenset(found)


def cut_rows(members: tuple[Member, ...], statement: ScopStatement, layout: Layout) -> tuple[tuple[Member, ...], int]:
    """The loops of a statement that walk along its target, one of them strip-mined so that the inner part fits a
    buffer.

    Also how many of the loops are outside.
    """
    own = isl.UnionSet.from_set(statement.domain)
    room = PIECE_BYTES // layout.type.itemsize
    inside = len(members)
    written = 1
    while inside > 0 and _walks(members[inside - 1], statement, layout, written):
        extent = extent_of(members[inside - 1].function, own)
        if written * extent > room:
            return _cut(members, inside - 1, _part(extent, room // written)), inside
        written *= extent
        inside -= 1
    return members, inside


def _walks(member: Member, statement: ScopStatement, layout: Layout, step: int) -> bool:
    """Whether neighbouring iterations of a loop without dependences write elements at this distance."""
    iterator = iterator_of(member.function, statement.body)
    return member.coincident and iterator is not None and stride(statement.body.subscripts, layout, iterator) == step


def _part(extent: int, most: int) -> int:
    """At most ``most`` iterations: a divisor of all of them, unless it would be much smaller."""
    divisor = next(size for size in range(most, 0, -1) if extent % size == 0)
    return divisor if 2 * divisor > most else -(-extent // -(-extent // most))


def _cut(members: tuple[Member, ...], position: int, size: int) -> tuple[Member, ...]:
    if size == 1:
        return members
    member = members[position]
    value = isl.Val.int_from_si(member.function.get_ctx(), size)
    tile = Member(member.function.scale_down_val(value).floor(), member.coincident)
    point = replace(member, function=member.function.mod_val(value))
    return (*members[:position], tile, point, *members[position + 1 :])


def fits_stream(box: Box, layout: Layout) -> bool:
    """Whether a buffer of a result's elements in the box is neither too large nor of too short runs in memory."""
    run = 1
    for extent, step in zip(reversed(box.extents), reversed(layout.steps), strict=True):
        if step != run:
            break
        run *= extent
    size = math.prod(box.extents) * layout.type.itemsize
    return run * layout.type.itemsize >= _RUN_BYTES and size <= PIECE_BYTES
