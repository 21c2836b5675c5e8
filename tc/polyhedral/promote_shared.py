"""Read tiles in memory that the threads of a block share (paper, Section 5.3 and appendix A.3).

Below the innermost loops over tiles, an operand of which several threads read the same elements is copied, each thread
some of it, and read from the copy.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.language.affine import isl_name
from tc.polyhedral.box import Box, bounding_box, own_space
from tc.polyhedral.deal_copies import deal_out, piece_of
from tc.polyhedral.extents import extent_of
from tc.polyhedral.loops import LoopKind
from tc.polyhedral.pack import value_reads
from tc.polyhedral.promote import is_affine, program_names
from tc.polyhedral.promote_temporaries import has_owner
from tc.polyhedral.promotion import Access, Promoted, bytes_of, padded_layout, promote_accesses
from tc.polyhedral.scop import Scop
from tc.polyhedral.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.vectorize import layouts_of


def promote_shared(tree: ScheduleTree, scop: Scop, most_bytes: int, padding: int) -> tuple[ScheduleTree, Scop]:
    """The tree with copies of at most so many bytes at a time for each block; ``place_barriers`` adds who waits.

    ``padding``: elements added to every row of a copy.
    """
    promoter = _Promoter(scop, most_bytes, padding)
    return replace(tree, root=promoter.visit(tree.root, tree.domain, ())), promoter.scop


class _Promoter:
    """Visits the tree; ``scop`` gains the copies and the promoted accesses on the way."""

    def __init__(self, scop: Scop, most_bytes: int, padding: int) -> None:
        self.scop = scop
        self.most_bytes = most_bytes
        self.padding = padding

    def visit(self, node: Node, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        match node:
            case Leaf():
                return node
            case Sequence(filters):
                branches = (replace(f, child=self.visit(f.child, domain.intersect(f.domain), above)) for f in filters)
                return Sequence(tuple(branches))
            case Band(members, _, child):
                below = self.promote(node, domain, above)
                return replace(node, child=below or self.visit(child, domain, (*above, *members)))
            case Extension(instances=instances, child=child):
                return replace(node, child=self.visit(child, domain.union(instances.range()), above))
            case _:
                assert_never(node)

    def promote(self, band: Band, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node | None:
        """What is below the band, with all promotions there; None if there are none."""
        if not _is_nest(band.child):
            return None
        members = (*above, *band.members)
        found: list[tuple[Promoted, Box]] = []
        # Temporaries may lie there, too.
        room = self.most_bytes - sum(_bytes(self.scop, p.buffer.name) for p in self.scop.promotions if p.buffer.shared)
        while (operand := self.operand(domain, members, room)) is not None:
            promoted, _ = operand
            self.scop = promoted.scop
            found.append(operand)
            room -= _bytes(promoted.scop, promoted.buffer)
        if not found:
            return None
        threads = _thread_counts(members, domain)
        filters: list[Filter] = []
        instances: list[isl.UnionMap] = []
        for promoted, box in found:
            assert promoted.loads is not None, "operands are only read"
            dealt = deal_out(promoted.loads, box.extents, self.piece(promoted, box), members, threads)
            filters.append(Filter(own_space(promoted.loads.domain), dealt.loops))
            instances.append(dealt.instances)
        node: Node = Sequence((*filters, Filter(domain.universe(), band.child)))
        for (promoted, _), own in zip(reversed(found), reversed(instances), strict=True):
            node = Extension(promoted.buffer, own, node, shared=True)
        return node

    def piece(self, promoted: Promoted, box: Box) -> int:
        """Elements that a thread copies at a time."""
        assert promoted.loads is not None
        (access,) = promoted.loads.promoted
        source = next(
            layout
            for name, layout in layouts_of(self.scop).items()
            if isl_name(name) == access.element.get_tuple_name(isl.dim_type.out)
        )
        target = next(p.buffer.layout for p in self.scop.promotions if p.buffer.name == promoted.buffer)
        return piece_of(promoted.loads, box, source, target)

    def operand(self, domain: isl.UnionSet, members: tuple[Member, ...], room: int) -> tuple[Promoted, Box] | None:
        """The first operand below that several threads of a block read, and that fits the room, with its tile."""
        layouts = layouts_of(self.scop)
        prefix = tuple(member for member in members if member.kind is not LoopKind.THREAD)
        names = program_names(domain, self.scop)
        written = {
            relation.get_tuple_name(isl.dim_type.out) for n in names for relation in self.scop.statement(n).writes
        }
        copies = {name for p in self.scop.promotions for name in (p.loads, p.stores)}
        for name in names:
            if name in copies:
                continue
            statement = self.scop.statement(name)
            promoted = {access.element.get_tuple_name(isl.dim_type.out) for access in statement.promoted}
            for position, read in enumerate(value_reads(statement.body)):
                tensor = isl_name(read.tensor)
                if tensor in written or tensor in promoted or read.tensor not in layouts:
                    continue
                if not is_affine(read, statement) or read.tensor in {p.buffer.name for p in self.scop.promotions}:
                    continue
                relation = statement.reads[position]
                box = bounding_box([relation], prefix)
                if box is None:
                    continue
                type = layouts[read.tensor].type
                if bytes_of(padded_layout(type, box, self.padding)) > room:
                    continue
                if has_owner([relation], members):
                    continue
                order = tuple(range(len(box.extents)))
                buffer = f"shared{len(self.scop.promotions)}_{read.tensor}"
                access = (Access(name, position),)
                promoted_to = promote_accesses(
                    self.scop, access, prefix, box, buffer, order, stored=False, shared=True, padding=self.padding
                )
                return promoted_to, box
        return None


def _is_nest(node: Node) -> bool:
    """Whether there are only the points of a tile below."""
    return isinstance(node, Band) and isinstance(node.child, Leaf)


def _bytes(scop: Scop, buffer: str) -> int:
    return bytes_of(next(p.buffer.layout for p in scop.promotions if p.buffer.name == buffer))


def _thread_counts(members: Items[Member], domain: isl.UnionSet) -> list[int]:
    """The threads of a block along each dimension, in the order of the members."""
    return [extent_of(member.function, domain) for member in members if member.kind is LoopKind.THREAD]
