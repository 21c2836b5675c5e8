"""Non-temporal stores for results that are too large for the caches, a block at a time.

An ordinary store reads its cache line first, and evicts another one.  Non-temporal stores of whole lines do neither;
the lines come from a buffer that holds a block of the result and stays in the first-level cache.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.language.isl.affine import isl_name
from tc.language.program.program import Read, reads_in
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.box import Box
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.reads import accesses, touches
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.ir.loops import LINE_BYTES
from tc.polyhedral.ir.scop import Scop, ScopStatement
from tc.polyhedral.ir.tree import Member

# Of a buffer.  While one is written past the caches, nothing is read, and the other way round, unless a core has both
# among the instructions that it has under way: with 8 KiB, a copy takes 1.2 to 1.3 times as long (measured on Zen 3).
PIECE_BYTES: Final = 1 << 10
# Shorter runs of contiguous elements have too many incomplete lines at their ends.
_RUN_BYTES: Final = 256


def streamed_results(scop: Scop, least: int) -> frozenset[str]:
    """The results of at least so many bytes (0: none) that one statement writes once and nothing reads.

    What reads and writes a buffer that stands for a result does not count, but sums in buffers are not streamed: they
    stay in registers until they are stored.
    """
    uses = Counter(tensor for statement in scop.statements for tensor, _ in accesses(statement.body))
    once = {s.body.target for s in scop.statements if uses[s.body.target] == 1 and s.body.reduction is None}
    reductions = (s for s in scop.statements if s.body.reduction is not None)
    sums = {own.get_tuple_name(isl.dim_type.out) for s in reductions for own in s.writes}
    results = (own for own in scop.buffers if own.name in once and isl_name(own.name) not in sums)
    return frozenset(own.name for own in results if 0 < least <= _bytes(own.layout))


def collected_results(scop: Scop, least: int) -> frozenset[str]:
    """The results of at least so many bytes (0: none) that buffers may collect before they are streamed: one statement
    writes them, and then others change them in place, element by element.

    That is done where all of these statements are in one nest.
    """
    found: set[str] = set()
    for buffer in scop.buffers:
        users = [s for s in scop.statements if touches(s, buffer.name)]
        if not 0 < least <= _bytes(buffer.layout) or not users:
            continue
        if not _own_reads(users[0], buffer.name) and all(_changes_in_place(s, buffer.name) for s in users):
            found.add(buffer.name)
    return frozenset(found)


def _own_reads(statement: ScopStatement, tensor: str) -> list[Read]:
    return [read for read in reads_in(statement.body.value) if read.tensor == tensor]


def _changes_in_place(statement: ScopStatement, tensor: str) -> bool:
    body = statement.body
    alike = all(read.subscripts == body.subscripts for read in _own_reads(statement, tensor))
    return body.target == tensor and body.reduction is None and alike


def _bytes(layout: Layout) -> int:
    return math.prod(layout.shape) * layout.type.itemsize


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
            line = LINE_BYTES // math.gcd(LINE_BYTES, written * layout.type.itemsize)
            return _cut(members, inside - 1, _part(extent, room // written, line)), inside
        written *= extent
        inside -= 1
    return members, inside


def _walks(member: Member, statement: ScopStatement, layout: Layout, step: int) -> bool:
    """Whether neighbouring iterations of a loop without dependences write elements at this distance."""
    iterator = iterator_of(member.function, statement.body)
    return member.coincident and iterator is not None and stride(statement.body.subscripts, layout, iterator) == step


def _part(extent: int, most: int, line: int) -> int:
    """At most ``most`` iterations: a divisor of all of them, unless it would be much smaller.

    ``line``: how many fill lines of the cache.  Where all iterations do, parts do as well.
    """
    unit = line if extent % line == 0 and line <= most else 1
    divisor = next((size for size in range(most // unit * unit, 0, -unit) if extent % size == 0), 1)
    if 2 * divisor > most:
        return divisor
    even = -(-extent // -(-extent // most))
    return min(-(-even // unit), most // unit) * unit


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
