"""Promotes read-only tiles to shared memory (paper, Section 5.3 and appendix A.3).

Below the innermost loops over tiles, an operand of a reduction is copied cooperatively by the threads of a block, and
read from the copy, if several threads read the same elements, or if accesses of neighbouring threads are not coalesced.
With several stages, copies are pipelined: they run some iterations of the tile loop ahead of the reads, into rotating
buffers.  Tiles that do not change in the innermost tile loops are hoisted out of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import Final, assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.affine import isl_name
from tc.language.isl.pieces import sets_of
from tc.polyhedral.analysis.box import Box, Boxes, own_space, prefix_map
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.reads import program_names
from tc.polyhedral.gpu.promotion.distribute_copies import Distributed, distributed, piece_of, thread_counts
from tc.polyhedral.gpu.promotion.linearize_copies import linearize_copies
from tc.polyhedral.gpu.promotion.read_again import held, read_again, row_of
from tc.polyhedral.gpu.promotion.shared_operands import OperandTiles, promote_operand
from tc.polyhedral.gpu.tensor.tile_shapes import are_warpgroups
from tc.polyhedral.ir.loops import LoopKind, Sharing
from tc.polyhedral.ir.scop import Rotation, Scop, layouts_of
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.transform.buffer_layouts import Padding, bytes_of
from tc.polyhedral.transform.promotion import Placement, Promoted, promote_accesses
from tc.targets.options import TileLayout

# Bytes of operands of a chain; fewer are read as quickly where they are.
_WORTH_COPYING: Final = 4096


@frozen
class SharedRoom:
    """Limits and layout of shared memory: ``bytes`` of a block; rows get ``padding`` elements against bank conflicts.

    ``stages``: tiles of an operand that are held at a time (multiple buffering); None: as many as fit, at most
    ``most_stages``.  ``registers``: of a multiprocessor.  ``warpgroups``: factors may be swizzled for their
    instructions.
    """

    bytes: int
    layout: TileLayout
    padding: int | Padding
    stages: int | None
    most_stages: int
    registers: int
    warpgroups: bool = False


def promote_shared(tree: ScheduleTree, scop: Scop, room: SharedRoom) -> tuple[ScheduleTree, Scop]:
    """The tree with copies of tiles that fit the shared memory of a block; ``place_barriers`` adds the barriers.

    With several stages, copies run ``stages - 1`` iterations of the loop over tiles ahead of what reads them.  The
    barrier in each of these iterations makes the loop run them.
    """
    promoter = _SharedMemoryPromoter(scop, room)
    return replace(tree, root=promoter.visit(tree.root, tree.domain, ())), promoter.scop


class _SharedMemoryPromoter:
    """Visits the tree; ``scop`` gains the copies and the promoted accesses on the way."""

    def __init__(self, scop: Scop, room: SharedRoom) -> None:
        self.scop = scop
        self.room = room
        # Of the kernel that is visited: what its blocks share so far, and how many nests are still to come.
        self.taken = 0
        self.nests = 0
        self.boxes: Final = Boxes()

    def visit(self, node: Node, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        match node:
            case Leaf():
                return node
            case Sequence(filters):
                kept = self.keep_rows(node, domain, above) or self.keep_operands(node, domain, above)
                if kept is not None:
                    return self.visit(kept, domain, above)
                branches = (replace(f, child=self.visit(f.child, domain.intersect(f.domain), above)) for f in filters)
                return Sequence(tuple(branches))
            case Band(members, _, child):
                if any(member.kind is LoopKind.BLOCK for member in members):
                    held, self.nests = _inside(child)
                    self.taken = sum(_bytes(self.scop, buffer) for buffer in held)
                outside = self.promote_outside(node, domain, above)
                if outside is not None:
                    return self.visit(outside, domain, above)
                found = self.promote(node, domain, above)
                return replace(node, child=self.visit(child, domain, (*above, *members))) if found is None else found
            case Extension(instances=instances, child=child):
                return replace(node, child=self.visit(child, domain.union(instances.range()), above))
            case _:
                assert_never(node)

    def keep_rows(self, sequence: Sequence, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node | None:
        """The sequence with a tensor in shared memory of which several of its branches read the same row; None if there
        is none that fits, and that threads would not rather have in registers.
        """
        if not any(member.kind is LoopKind.THREAD for member in above):
            return None
        chain = self.scop.chain
        if chain is not None and {own.statement for own in chain.links} & set(program_names(domain, self.scop)):
            return None  # its products read whole tiles of keys
        prefix = tuple(member for member in above if member.kind is not LoopKind.THREAD)
        few = held(math.prod(thread_counts(above, domain)), self.room.registers)
        for tensor in read_again(self.scop, sequence, domain):
            row = row_of(self.scop, tensor, domain, prefix)
            if row is None or math.prod(row.box.extents) <= few:
                continue
            order = tuple(range(len(row.box.extents)))
            placement = Placement(f"shared{len(self.scop.promotions)}_{tensor}", order, Sharing.BLOCK)
            layout = placement.layout(layouts_of(self.scop)[tensor].type, row.box, written=False)
            if bytes_of(layout) > self.room.bytes - self.taken:
                continue
            found = [(promote_accesses(self.scop, row, placement, stored=False), row.box)]
            self.scop = found[-1][0].scop
            self.taken += _bytes_of(found)
            dealt = self.distributed(found, above, domain, 0)
            return _in_buffers(_buffers(found), dealt, _after(dealt, sequence, domain))
        return None

    def keep_operands(self, sequence: Sequence, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node | None:
        """The sequence with all operands of its reductions copied before, so that threads wait for memory once; None
        where there are not several of them or not much, some are in tiles, or a thread runs it more than once.
        """
        if not above or not all(member.kind.is_mapped for member in above):
            return None
        reducing = [branch for branch in sequence.filters if _reduces(branch.child)]
        if len(reducing) < 2 or any(_is_tiled(branch.child) for branch in sequence.filters):
            return None
        found = self.fitting(domain, above, self.room.bytes - self.taken, None)
        if _bytes_of(found) < _WORTH_COPYING:
            return None
        self.scop = found[-1][0].scop
        self.taken += _bytes_of(found)
        dealt = self.distributed(found, above, domain, 0)
        return _in_buffers(_buffers(found), dealt, _after(dealt, sequence, domain))

    def promote(self, band: Band, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node | None:
        """The band with all promotions below; None if there are none."""
        if not _is_nest(band.child):
            return None
        members = (*above, *band.members)
        rotation, found = self.operands(domain, members, lanes=_are_for_lanes(band.child))
        if not found:
            return None
        self.scop = found[-1][0].scop
        ahead = 0 if rotation is None else rotation.step * (rotation.slots - 1)
        dealt = self.distributed(found, members, domain, ahead)
        if rotation is None:
            return replace(band, child=_in_buffers(_buffers(found), dealt, _after(dealt, band.child, domain)))
        # The iterations of the last loop share rotating buffers.
        nothing = isl.UnionMap.empty(isl.Space.params_alloc(self.scop.context, 0))
        *outer, last = band.members
        node: Node = _in_buffers([None] * len(dealt), dealt, _after(dealt, band.child, domain))
        node = replace(band, members=(last,), child=node)
        for buffer in reversed(_buffers(found)):
            node = Extension(buffer, nothing, node, Sharing.BLOCK)
        return _around(outer, band.permutable, node)

    def promote_outside(self, band: Band, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node | None:
        """The band with loop-invariant tiles hoisted: copied once, around its last loops; None if there are none."""
        chain = self.scop.chain
        over_keys = chain is not None and chain.is_in_whole_steps and not any(m.coincident for m in band.members)
        if not (over_keys or _is_nest(band.child)):
            return None
        for position in range(len(band.members)):
            outer, inner = band.members[:position], band.members[position:]
            if any(m.kind is not LoopKind.SEQUENTIAL for m in inner) or extent_of(inner[0].function, domain) == 1:
                continue
            room, members = self.room.bytes - self.taken, (*above, *band.members)
            lanes = _are_for_lanes(band.child)
            found = self.fitting(domain, members, room, None, alike=len(inner), lanes=lanes)
            if found:
                self.scop = found[-1][0].scop
                self.taken += _bytes_of(found)
                dealt = self.distributed(found, (*above, *outer), domain, 0)
                below = _after(dealt, replace(band, members=inner), domain)
                return _around(outer, band.permutable, _in_buffers(_buffers(found), dealt, below))
        return None

    def distributed(
        self, found: Items[tuple[Promoted, Box]], members: tuple[Member, ...], domain: isl.UnionSet, ahead: int
    ) -> list[Distributed]:
        """The copies of what was promoted, linearized and distributed over the threads of a block."""
        threads = thread_counts(members, domain)
        dealt: list[Distributed] = []
        for promoted, box in found:
            assert promoted.loads is not None, "operands are only read"
            piece = self.piece(promoted, box)
            self.scop, copy = linearize_copies(self.scop, promoted.loads, box.extents)
            dealt.append(distributed(copy.domain, math.prod(box.extents), piece, members, threads, ahead))
        return dealt

    def operands(
        self, domain: isl.UnionSet, members: tuple[Member, ...], *, lanes: bool
    ) -> tuple[Rotation | None, list[tuple[Promoted, Box]]]:
        """The operands to promote below a loop over tiles, the last member, and the rotation of their buffers."""
        room = self.room.bytes - self.taken
        rotation = _rotation(members, domain, self.room.stages or 1)
        found = self.fitting(domain, members, room, rotation, lanes=lanes)
        if self.room.stages is None and found:
            share = room // max(1, self.nests)
            rotation = _rotation(members, domain, min(self.room.most_stages, share // _bytes_of(found)))
            if rotation is not None:
                found = self.fitting(domain, members, room, rotation, lanes=lanes)
        self.nests -= 1
        self.taken += _bytes_of(found)
        return rotation, found

    def fitting(
        self,
        domain: isl.UnionSet,
        members: tuple[Member, ...],
        room: int,
        rotation: Rotation | None,
        *,
        alike: int = 0,
        lanes: bool = False,
    ) -> list[tuple[Promoted, Box]]:
        """Operands as long as they fit the ``room``; the last one has the scop with all of them.

        ``alike``: if not 0, only those whose tile is invariant in so many of the last members.  ``lanes``: they are for
        points that lanes of warps have.
        """
        found: list[tuple[Promoted, Box]] = []
        swizzled = self.room.warpgroups and are_warpgroups(thread_counts(members, domain))
        scop, tiles = self.scop, OperandTiles(room, self.room.layout, self.room.padding, rotation, swizzled, lanes)
        while (operand := promote_operand(scop, domain, members, tiles, self.boxes, alike=alike)) is not None:
            promoted, _ = operand
            scop = promoted.scop
            tiles = replace(tiles, bytes=tiles.bytes - _bytes(scop, promoted.buffer))
            found.append(operand)
        return found

    def piece(self, promoted: Promoted, box: Box) -> int:
        """The number of elements in one vector copy."""
        assert promoted.loads is not None
        (access,) = promoted.loads.promoted
        promotion = next(p for p in self.scop.promotions if p.buffer.name == promoted.buffer)
        if promotion.gathered is not None:
            return 1
        source = next(
            layout
            for name, layout in layouts_of(self.scop).items()
            if isl_name(name) == access.element.get_tuple_name(isl.dim_type.out)
        )
        return piece_of(promoted.loads, box, source, promotion.buffer.layout)


def _after(dealt: Items[Distributed], node: Node, domain: isl.UnionSet) -> Sequence:
    """The copies, then the node."""
    copies = (Filter(own_space(own.copies), own.loops) for own in dealt)
    return Sequence((*copies, Filter(domain.universe(), node)))


def _in_buffers(buffers: Items[str | None], dealt: Items[Distributed], node: Node) -> Node:
    """The node with the instances of the copies, in the buffers for them; None: these stand further outside."""
    for buffer, own in zip(reversed(buffers), reversed(dealt), strict=True):
        node = Extension(buffer, own.instances, node, Sharing.BLOCK, own.functions)
    return node


def _buffers(found: Items[tuple[Promoted, Box]]) -> list[str]:
    return [promoted.buffer for promoted, _ in found]


def _around(members: Items[Member], permutable: bool, node: Node) -> Node:
    return Band(tuple(members), permutable, node) if members else node


def _rotation(members: Items[Member], domain: isl.UnionSet, stages: int) -> Rotation | None:
    """How the tiles of successive iterations of the last loop rotate through the slots; None for a single slot."""
    member = members[-1]
    if stages <= 1 or member.kind is not LoopKind.SEQUENTIAL:
        return None
    if extent_of(member.function, domain) == 1:
        return None
    step, farthest = _distances(members, domain)
    return Rotation(step, min(stages, farthest // step + 1)) if farthest else None


def _distances(members: Items[Member], domain: isl.UnionSet) -> tuple[int, int]:
    """The least and the greatest distance between iterations of the last loop in one block.

    Blocks may take iterations cyclically.
    """
    together = [member for member in members if member.kind is not LoopKind.THREAD]
    pieces = sets_of(domain)
    values = prefix_map(pieces[0], together).range()
    for piece in pieces[1:]:
        values = values.union(prefix_map(piece, together).range())
    pairs = isl.Map.from_domain_and_range(values, values)
    outer = len(together) - 1
    for position in range(outer):
        pairs = pairs.equate(isl.dim_type.in_, position, isl.dim_type.out, position)
    distances = pairs.deltas().project_out(isl.dim_type.set, 0, outer)
    return max(1, int(distances.get_stride(0).to_python())), int(distances.dim_max_val(0).to_python())


def _reduces(node: Node) -> bool:
    """Whether some innermost loop below reduces."""
    match node:
        case Leaf():
            return False
        case Band(members, _, child):
            return members[-1].kind is LoopKind.REDUCTION or _reduces(child)
        case Sequence(filters):
            return any(_reduces(branch.child) for branch in filters)
        case Extension(child=child):
            return _reduces(child)
        case _:
            assert_never(node)


def _is_tiled(node: Node) -> bool:
    """Whether there are loops over tiles of a reduction below."""
    match node:
        case Leaf():
            return False
        case Band(members, _, child):
            return any(m.kind is LoopKind.SEQUENTIAL and not m.coincident for m in members) or _is_tiled(child)
        case Sequence(filters):
            return any(_is_tiled(branch.child) for branch in filters)
        case Extension(child=child):
            return _is_tiled(child)
        case _:
            assert_never(node)


def _is_nest(node: Node) -> bool:
    """Whether there are only the points of a tile below."""
    return isinstance(node, Band) and isinstance(node.child, Leaf)


def _are_for_lanes(node: Node) -> bool:
    """Whether the points of a tile are those that lanes of warps have."""
    return isinstance(node, Band) and any(member.digit for member in node.members)


def _inside(node: Node) -> tuple[list[str], int]:
    """The shared buffers of a kernel, and the number of its nests of points, which may get some."""
    match node:
        case Leaf():
            return [], 0
        case Sequence(filters):
            below = [_inside(f.child) for f in filters]
            return [buffer for buffers, _ in below for buffer in buffers], sum(nests for _, nests in below)
        case Band(child=child):
            buffers, nests = _inside(child)
            return buffers, nests + _is_nest(child)
        case Extension(buffer=buffer, child=child, sharing=sharing):
            buffers, nests = _inside(child)
            own = [buffer] if buffer is not None and sharing is Sharing.BLOCK else []
            return [*own, *buffers], nests
        case _:
            assert_never(node)


def _bytes_of(found: Items[tuple[Promoted, Box]]) -> int:
    return sum(_bytes(promoted.scop, promoted.buffer) for promoted, _ in found)


def _bytes(scop: Scop, buffer: str) -> int:
    return bytes_of(next(p.buffer.layout for p in scop.promotions if p.buffer.name == buffer))
