"""Which operands are worth shared memory: those that several threads read, and those without coalesced accesses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Final, assert_never

import islpy as isl

from tc.language.algebra.rewriting import fresh_name
from tc.language.isl.affine import isl_name
from tc.language.isl.pieces import pieces_of
from tc.language.program.guards import GuardedRead
from tc.language.program.program import Read, walk
from tc.language.program.terms import half_factors, matrix_factors
from tc.polyhedral.analysis.box import Box, Boxes
from tc.polyhedral.analysis.extents import sides_of
from tc.polyhedral.analysis.reads import data_ranges, has_affine_subscripts, program_names
from tc.polyhedral.analysis.scattered import is_scatter
from tc.polyhedral.analysis.strides import is_turned, iterator_of
from tc.polyhedral.gpu.promotion.promote_temporaries import has_owner
from tc.polyhedral.gpu.tensor.taps import moved_by, summed
from tc.polyhedral.gpu.tensor.tile_shapes import EIGHT
from tc.polyhedral.ir.gathered import Gathered
from tc.polyhedral.ir.loops import LoopKind, Sharing
from tc.polyhedral.ir.scop import Rotation, Scop, ScopStatement, layouts_of, reads_by_position
from tc.polyhedral.ir.swizzle import SWIZZLED_ROW, SWIZZLED_ROWS, Swizzle
from tc.polyhedral.ir.tree import Member
from tc.polyhedral.transform.buffer_layouts import Padding, bytes_of
from tc.polyhedral.transform.promotion import Access, Footprint, Placement, Promoted, promote_accesses
from tc.targets.options import TileLayout

# Threads along a side of a tile that is as large as some operand.
_SIDE: Final = 16


@dataclass(frozen=True)
class Operand:
    """A read of a statement, by position, and ``{ instance -> element }`` of what is copied for it.

    ``gathered``: where an index is read, too, what is copied is not a box of the tensor, but an element for every value
    of the iterators that the read mentions (paper, Section 5.5).
    """

    statement: ScopStatement
    position: int
    read: Read
    relation: isl.Map
    gathered: Gathered | None = None


@dataclass(frozen=True)
class OperandTiles:
    """How tiles of operands lie in shared memory: at most so many ``bytes``, rows with so many elements of ``padding``.

    ``rotation``: of their buffers.  ``swizzled``: those of products of halves are, where they can, for warpgroups.
    ``lanes``: they are for the points that lanes of warps have, which matrix instructions may multiply.
    """

    bytes: int
    layout: TileLayout
    padding: int | Padding
    rotation: Rotation | None
    swizzled: bool
    lanes: bool


def promote_operand(
    scop: Scop, domain: isl.UnionSet, members: tuple[Member, ...], tiles: OperandTiles, boxes: Boxes, *, alike: int
) -> tuple[Promoted, Box] | None:
    """The first operand below that is worth a copy and fits the tiles' bytes, promoted, with its tile.

    ``alike``: if not 0, only an operand whose tile is invariant in so many of the last members; it is promoted around
    them.
    """
    layouts = layouts_of(scop)
    prefix = tuple(member for member in members if member.kind is not LoopKind.THREAD)
    neighbours = next((member for member in reversed(members) if member.kind is LoopKind.THREAD), None)
    for operand in _operands(scop, domain, indices=not alike):
        statement, tensor = operand.statement, layouts[operand.read.tensor]
        turned = (
            operand.gathered is None
            and neighbours is not None
            and is_turned(operand.read, tensor, iterator_of(neighbours.function, statement.body))
        )
        # What is only read by neighbours at the same time, they get at once from the cache.
        if not (turned or statement.accumulates):
            continue
        box = _tile(operand.relation, prefix, alike, boxes)
        if box is None:
            continue
        name, order = f"shared{len(scop.promotions)}_{operand.read.tensor}", _order(operand, tiles.layout, box)
        steps = _steps(operand, scop, prefix[: box.depth]) if tiles.lanes else None
        if steps is not None:
            order = steps
        lanes = [member for member in members if member.kind is LoopKind.THREAD][-2:] if tiles.lanes else []
        room = _room(operand, box, lanes)
        swizzle = _swizzle(operand, order, room) if tiles.swizzled else None
        padding = tiles.padding if swizzle is None else 0
        placement = Placement(name, order, Sharing.BLOCK, padding, tiles.rotation, room=room, swizzle=swizzle)
        if bytes_of(placement.layout(tensor.type, box, written=False)) > tiles.bytes:
            continue
        if not turned and has_owner([operand.relation], members):
            continue
        access = (Access(statement.name, operand.position),)
        footprint = Footprint(access, prefix[: box.depth], box, operand.gathered)
        promoted = promote_accesses(scop, footprint, placement, stored=False)
        return promoted, box
    return None


def _swizzle(operand: Operand, order: tuple[int, ...], room: tuple[int, ...]) -> Swizzle | None:
    """That of a factor of a product of halves, with the rows of its tile in memory; None where these do not fit it."""
    if half_factors(operand.statement.body.value) is None or operand.gathered is not None or not order:
        return None
    row = room[order[-1]] * operand.read.type.itemsize
    found = Swizzle(row, math.prod(room) // room[order[-1]])
    fits = operand.read.type.is_half and row % SWIZZLED_ROW == 0 and found.panel % SWIZZLED_ROWS == 0
    return found if fits else None


def _order(operand: Operand, layout: TileLayout, box: Box) -> tuple[int, ...]:
    """The dimensions of a tile, from the outermost one to the one that is contiguous."""
    dimensions = range(operand.relation.dim(isl.dim_type.out))
    if layout is TileLayout.MEMORY or not dimensions:
        return tuple(dimensions)
    (results,) = operand.statement.writes
    points = {position for own in moved_by(results) for position in own}
    found = moved_by(operand.relation)
    by_points = tuple(sorted(dimensions, key=lambda dimension: not points.isdisjoint(found[dimension])))
    match layout:
        case TileLayout.POINTS:
            return by_points
        case TileLayout.VECTORS:
            # Steps of a reduction that lie side by side are read at once, too, if there is an even number of them.
            last, best = dimensions[-1], by_points[-1]
            steps = box.extents[last] % 2 == 0 or not points.isdisjoint(found[last])
            return tuple(dimensions) if steps or box.extents[best] % 2 else by_points
        case _:
            assert_never(layout)


def _steps(operand: Operand, scop: Scop, prefix: tuple[Member, ...]) -> tuple[int, ...] | None:
    """The dimensions of a tile with that of the steps last, where it has several taps of a sum of products of matrices.

    What one lane holds begins at any of these, and must lie side by side for all.
    """
    statement = operand.statement
    found = summed(statement, scop)
    at = {iterator_of(member.function, statement.body) for member in prefix}
    if found is None or not found.taps.keys() - at:
        return None
    place, moved = statement.body.iterators.index(found.steps), moved_by(operand.relation)
    return tuple(sorted(range(len(moved)), key=lambda dimension: place in moved[dimension]))


def _room(operand: Operand, box: Box, lanes: Items[Member]) -> tuple[int, ...]:
    """The extents of a buffer, with places for points beyond the border of a result, which threads go through, too.

    ``lanes``: the loops over those of a warp, which have eight rows and columns of a result, if that has fewer, too.
    """
    (results,) = operand.statement.writes
    points = {position for own in moved_by(results) for position in own}
    beyond = [0] * len(box.extents)
    for member in lanes if operand.gathered is None else ():
        beyond = [more + own for more, own in zip(beyond, _beyond(operand, member), strict=True)]
    return tuple(
        _whole(extent) if own and own <= points else extent + more
        for extent, own, more in zip(box.extents, moved_by(operand.relation), beyond, strict=True)
    )


def _beyond(operand: Operand, lanes: Member) -> list[int]:
    """How much further the eighth point is than the last one, along every dimension of an operand.

    Lines are short where subscripts grow with their points (``Summed.ahead``).
    """
    statement, dimensions = operand.statement, range(operand.relation.dim(isl.dim_type.out))
    points = iterator_of(lanes.function, statement.body)
    place = None if points is None else statement.body.iterators.index(points)
    missing = 0 if place is None else EIGHT - sides_of(statement.domain)[place]
    if place is None or missing <= 0:
        return [0 for _ in dimensions]
    functions = operand.relation.as_pw_multi_aff()
    every = (pieces_of(functions.get_at(n)) for n in dimensions)
    factors = ([part.get_coefficient_val(isl.dim_type.in_, place).to_python() for _, part in own] for own in every)
    return [missing * max(0, *own) for own in factors]


def _whole(extent: int) -> int:
    """As many points as threads go through along a side of a tile: 16 threads of a large one, or pairs of points."""
    unit = _SIDE if extent > 2 * _SIDE else min(extent, 2)
    return -(-extent // unit) * unit


def _tile(relation: isl.Map, prefix: tuple[Member, ...], alike: int, boxes: Boxes) -> Box | None:
    """The tile below all but so many of the last members; None if it depends on these."""
    one = boxes.of(relation, prefix)
    if one is None or not alike:
        return one
    outer = len(prefix) - alike
    if any(any(factors[outer:]) for _, factors in one.offsets):
        return None
    every = boxes.of(relation, prefix[:outer])
    return every if every is not None and every.extents == one.extents else None


def _operands(scop: Scop, domain: isl.UnionSet, *, indices: bool) -> Iterator[Operand]:
    """Reads that may be promoted; those inside of a gather after the gather itself, with which they would go.

    ``indices``: tensors that indices are read from as well; a gather could not be promoted after these.
    """
    names = program_names(domain, scop)
    copies = {name for p in scop.promotions for name in (p.loads, p.stores)}
    for name in names:
        # A copy would hold all that a range may be, of which the statement needs a part.
        if name not in copies and not data_ranges(scop.statement(name).body):
            yield from _operands_of(scop.statement(name), scop, names, indices=indices)


def _operands_of(statement: ScopStatement, scop: Scop, names: Items[str], *, indices: bool) -> Iterator[Operand]:
    if is_scatter(statement.body):
        return  # few of an owner's instances need what they read, and results are no box
    tensors = layouts_of(scop).keys() - {promotion.buffer.name for promotion in scop.promotions}
    promoted = {access.element.get_tuple_name(isl.dim_type.out) for access in statement.promoted}
    product = matrix_factors(statement.body.value, scop.products) is not None
    reads = list(reads_by_position(statement, scop.promotions))
    affine = {id(own) for _, own in reads if has_affine_subscripts(own.read, statement, scop.sizes)}
    gathers = [own for _, own in reads if id(own) not in affine and _may_gather(own, scop)]
    choosing = [part for own in gathers for part in _inner_reads(own.read)]
    inside = {id(part) for part in choosing}
    tensors -= set() if indices else {part.tensor for part in choosing}
    for position, own in sorted(reads, key=lambda pair: id(pair[1].read) in inside):
        tensor = own.read.tensor
        # Of a tensor that is read twice, a second tile is worth it for matrix instructions, which need both operands.
        if tensor not in tensors or (isl_name(tensor) in promoted and not product):
            continue
        if id(own) in affine:
            if isl_name(tensor) not in _written(scop, names):
                yield Operand(statement, position, own.read, statement.reads[position])
        elif own in gathers:
            count = statement.domain.dim(isl.dim_type.set)
            name = fresh_name(f"gathered{len(scop.promotions)}", layouts_of(scop).keys())
            gathered = Gathered(name, own.read, statement.body.iterators[:count])
            yield Operand(statement, position, own.read, gathered.relation(statement.domain), gathered)


def _may_gather(own: GuardedRead, scop: Scop) -> bool:
    """Whether a gathered element may be read ahead, even where the statement does not need it."""
    return not own.guards and _is_constant(own.read, scop)


def _inner_reads(read: Read) -> Iterator[Read]:
    """The reads of indices."""
    return (part for subscript in read.subscripts for part in walk(subscript) if isinstance(part, Read))


def _is_constant(read: Read, scop: Scop) -> bool:
    """Whether no statement writes what the read touches, and all of it is still where it was."""
    tensors = {own.tensor for own in (read, *_inner_reads(read))}
    buffers = {promotion.buffer.name for promotion in scop.promotions}
    every = [statement.name for statement in scop.statements]
    return not tensors & buffers and not {isl_name(tensor) for tensor in tensors} & _written(scop, every)


def _written(scop: Scop, names: Items[str]) -> set[str]:
    writes = (relation for name in names for relation in scop.statement(name).writes)
    return {relation.get_tuple_name(isl.dim_type.out) for relation in writes}
