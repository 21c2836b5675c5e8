"""Promotes temporaries that are used within a block: to shared memory, or to private memory of each thread.

Where every use of a temporary lies below one value of the members around a sequence, the sequence gets a buffer for it:
one for each thread if threads access different elements only, else one for the block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.base.dots import MatrixShape
from tc.base.frozen import frozen
from tc.language.program.terms import half_factors
from tc.polyhedral.analysis.box import bounding_box, prefix_map
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.reads import program_names, touches
from tc.polyhedral.gpu.promotion.distribute_copies import stored_behind
from tc.polyhedral.gpu.promotion.linearize_copies import linearize_copies
from tc.polyhedral.gpu.promotion.promote_rounded import RoundedRoom, promote_rounded
from tc.polyhedral.gpu.promotion.promote_to_lanes import has_warps_along_x, promote_to_lanes
from tc.polyhedral.gpu.promotion.read_again import room
from tc.polyhedral.gpu.tensor.products import matrix_product
from tc.polyhedral.ir.loops import Buffer, LoopKind, Sharing
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.transform.buffer_layouts import Padding, bytes_of, padded_layout
from tc.polyhedral.transform.promotion import (
    Access,
    Footprint,
    Placement,
    accesses_to,
    promote_accesses,
    reads_uncovered,
    relation_of,
)


@frozen
class Memory:
    """Limits: elements of one temporary in private memory of a thread, and bytes of shared memory of a block.

    ``shuffles``: whether the lanes of a warp may exchange private elements.  ``registers``: of a multiprocessor; 0
    where that does not matter.  ``shapes``: of the matrix instructions that there may be.  ``stages``: of
    tiles of operands, None of some; ``steps``: of a reduction in them.
    """

    private: int
    shared: int
    shuffles: bool = False
    registers: int = 0
    shapes: tuple[MatrixShape, ...] = ()
    stages: int | None = None
    steps: int = 0

    def kept(self, threads: int) -> int:
        """Elements of one temporary that each of so many threads of a block keeps."""
        return min(self.private, room(threads, self.registers)) if self.registers else self.private


def promote_temporaries(tree: ScheduleTree, scop: Scop, memory: Memory) -> tuple[ScheduleTree, Scop]:
    """The tree with buffers for its temporaries, and the scop in which their accesses go there."""
    promoter = _TemporaryPromoter(scop, memory)
    return replace(tree, root=promoter.visit(tree.root, tree.domain, ())), promoter.scop


class _TemporaryPromoter:
    """Visits the tree; ``scop`` gains the promoted accesses on the way."""

    def __init__(self, scop: Scop, memory: Memory) -> None:
        self.scop = scop
        self.memory = memory
        self.shared_bytes = 0
        self.threads: list[int] = []  # of a block of the kernel, x last
        self.warps = False  # whether its neighbours along x are the lanes of warps

    def visit(self, node: Node, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        match node:
            case Leaf():
                return node
            case Band(members, _, child):
                if any(member.kind is LoopKind.BLOCK for member in members):
                    self.shared_bytes = 0  # another kernel
                    along = [(m, extent_of(m.function, domain)) for m in members if m.kind is LoopKind.THREAD]
                    self.threads = [extent for _, extent in along]
                    # Lanes that are launched beyond the iterations hold nothing to combine.
                    self.warps = has_warps_along_x(self.threads) and along[-1][0].launched in (0, along[-1][1])
                return replace(node, child=self.visit(child, domain, (*above, *members)))
            case Sequence(filters):
                # Further inside, buffers are smaller.
                branches = (replace(f, child=self.visit(f.child, domain.intersect(f.domain), above)) for f in filters)
                sequence = Sequence(tuple(branches))
                if not any(member.kind is LoopKind.THREAD for member in above):
                    return sequence
                found: Node = self.promote_rounded(sequence, domain, above)
                for temporary in self.scop.temporaries:
                    found = self.promote(temporary, found, domain, above)
                for result in self.scop.buffers:
                    found = self.promote_result(result, found, domain, above)
                return found
            case Extension():
                raise AssertionError("nothing is promoted before")
            case _:
                assert_never(node)

    def promote_rounded(self, sequence: Sequence, domain: isl.UnionSet, above: tuple[Member, ...]) -> Sequence:
        """The sequence with what a product is rounded to in shared memory, if matrix instructions may compute it."""
        if matrix_product(self.scop, self.memory.shapes, domain) is None:
            return sequence
        before = len(self.scop.promotions)
        room = RoundedRoom(self.memory.shared - self.shared_bytes, self.memory.stages, self.memory.steps)
        self.scop, found = promote_rounded(self.scop, sequence, domain, above, room)
        self.shared_bytes += sum(bytes_of(own.buffer.layout) for own in self.scop.promotions[before:])
        return found

    def promote(self, temporary: Buffer, node: Node, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        """The node with the temporary in a buffer; as it is where there is no room, or the temporary outlives it."""
        users = {s.name for s in self.scop.statements if touches(s, temporary.name)}
        if not users or not users <= set(program_names(domain, self.scop)):
            return node
        accesses = accesses_to(self.scop, temporary.name, domain)
        if not accesses:
            return node
        relations = [relation_of(self.scop.statement(access.statement), access) for access in accesses]
        own = has_owner(relations, above)
        if not own and self.memory.shuffles and self.warps:
            found = promote_to_lanes(self.scop, temporary, accesses, node, domain, above, self.memory.private)
            if found is not None:
                self.scop, changed = found
                return changed
        prefix = above if own else tuple(member for member in above if member.kind is not LoopKind.THREAD)
        box = bounding_box(relations, prefix, strided=own)
        if box is None or reads_uncovered(self.scop, accesses, prefix):
            return node
        order = tuple(range(len(box.extents)))
        padding = Padding.BANKS if not own and self.is_factor(temporary, accesses) else Padding.CACHES
        bytes = bytes_of(padded_layout(temporary.layout.type, box, order, None if padding is Padding.BANKS else 0))
        kept = self.memory.kept(math.prod(self.threads))
        fits = box.fits_registers(kept) if own else self.shared_bytes + bytes <= self.memory.shared
        if not fits:
            return node
        self.shared_bytes += 0 if own else bytes
        buffer = f"{'private' if own else 'shared'}{len(self.scop.promotions)}_{temporary.name}"
        sharing = Sharing.THREAD if own else Sharing.BLOCK
        promoted = promote_accesses(
            self.scop, Footprint(accesses, prefix, box), Placement(buffer, order, sharing, padding), stored=False
        )
        self.scop = promoted.scop
        return Extension(buffer, promoted.instances, node, sharing)

    def is_factor(self, temporary: Buffer, accesses: Items[Access]) -> bool:
        """Whether a product of halves reads it, whose rows then lie in different banks for matrix instructions."""
        readers = (self.scop.statement(own.statement).body.value for own in accesses if own.read is not None)
        factors = (own for value in readers for own in half_factors(value) or ())
        return any(own.tensor == temporary.name for own in factors)

    def promote_result(self, result: Buffer, node: Node, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        """The node with a result in shared memory that other threads of the block read again, and copied out behind
        it; as it is where there is none, or no room.
        """
        accesses = accesses_to(self.scop, result.name, domain)
        if not accesses or all(own.read is None for own in accesses) or all(own.read is not None for own in accesses):
            return node
        relations = [relation_of(self.scop.statement(access.statement), access) for access in accesses]
        prefix = tuple(member for member in above if member.kind is not LoopKind.THREAD)
        if has_owner(relations, above) or reads_uncovered(self.scop, accesses, prefix):
            return node
        box = bounding_box(relations, prefix)
        if box is None:
            return node
        order = tuple(range(len(box.extents)))
        bytes = bytes_of(padded_layout(result.layout.type, box, order, 0))
        if self.shared_bytes + bytes > self.memory.shared:
            return node
        placement = Placement(f"shared{len(self.scop.promotions)}_{result.name}", order, Sharing.BLOCK)
        promoted = promote_accesses(self.scop, Footprint(accesses, prefix, box), placement, stored=True)
        assert promoted.loads is None, "what is read was written before"
        assert promoted.stores is not None, "results are stored"
        self.shared_bytes += bytes
        self.scop, copy = linearize_copies(promoted.scop, promoted.stores, box.extents)
        return stored_behind(copy, box, 1, promoted.buffer, Filter(domain, node), above)


def has_owner(relations: Items[isl.Map], members: tuple[Member, ...]) -> bool:
    """Whether each element is accessed by one thread only, at equal values of the other members."""
    threads = [position for position, member in enumerate(members) if member.kind is LoopKind.THREAD]
    touched: isl.Map | None = None  # { [values of the members] -> element }
    for relation in relations:
        found = prefix_map(relation.domain(), members).reverse().apply_range(relation)
        touched = found if touched is None else touched.union(found)
    assert touched is not None
    meeting = touched.apply_range(touched.reverse())
    for position in range(len(members)):
        if position not in threads:
            meeting = meeting.equate(isl.dim_type.in_, position, isl.dim_type.out, position)
    alone = isl.Map.universe(meeting.get_space())
    for position in threads:
        alone = alone.equate(isl.dim_type.in_, position, isl.dim_type.out, position)
    # What all pieces have in common often suffices, and isl need not look at each.
    return bool(isl.Map.from_basic_map(meeting.affine_hull()).is_subset(alone) or meeting.is_subset(alone))
