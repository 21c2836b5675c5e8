"""Promotes operands to registers, for the points of a thread's tile (paper, Section 5.3).

Below the loops of a reduction, a thread that computes several results uses every element of an operand several times.
It is loaded once, from the tensor or from its copy in shared memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import assert_never

import islpy as isl

from tc.language.isl.affine import isl_name
from tc.language.program.program import Expression, IteratorReference, Read, rebuild
from tc.language.program.specialization import Layout, contiguous_strides
from tc.polyhedral.analysis.box import Box, bounding_box, box_elements, own_space, prefix_map
from tc.polyhedral.analysis.copies import copy_band
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.reads import has_affine_subscripts, program_names
from tc.polyhedral.analysis.scattered import is_scatter
from tc.polyhedral.ir.loops import Buffer, LoopKind
from tc.polyhedral.ir.scop import PromotedAccess, Promotion, Scop, ScopStatement, layouts_of, reads_by_position
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.transform.promotion import (
    Access,
    Footprint,
    Placement,
    Promoted,
    Tile,
    instances_of,
    load_statement,
    locate,
    promote_accesses,
)


def promote_operands(tree: ScheduleTree, scop: Scop, most: int) -> tuple[ScheduleTree, Scop]:
    """The tree whose threads hold operands in registers, at most so many elements below each reduction."""
    promoter = _OperandPromoter(scop, most)
    return replace(tree, root=promoter.visit(tree.root, tree.domain, ())), promoter.scop


class _OperandPromoter:
    """Visits the tree; ``scop`` gains the copies and the promoted accesses on the way."""

    def __init__(self, scop: Scop, most: int) -> None:
        self.scop = scop
        self.most = most

    def visit(self, node: Node, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        match node:
            case Leaf():
                return node
            case Sequence(filters):
                branches = (replace(f, child=self.visit(f.child, domain.intersect(f.domain), above)) for f in filters)
                return Sequence(tuple(branches))
            case Band(members, _, child):
                digits = any(member.digit for member in members)  # warps read operands from shared memory together
                if isinstance(child, Leaf) and not digits and any(m.kind is LoopKind.THREAD for m in above):
                    return self.nest(node, domain, above)
                return replace(node, child=self.visit(child, domain, (*above, *members)))
            case Extension(instances=instances, child=child):
                return replace(node, child=self.visit(child, domain.union(instances.range()), above))
            case _:
                assert_never(node)

    def nest(self, band: Band, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        """The loops of a reduction, the copies of its operands, and the loops over a thread's points."""
        depth = max((n + 1 for n, member in enumerate(band.members) if not member.coincident), default=0)
        points = band.members[depth:]
        if not depth or not points:
            return band
        prefix = (*above, *band.members[:depth])
        room, found = self.most, list[Promoted]()
        while (promoted := self.operand(domain, prefix, points, room)) is not None:
            self.scop = promoted.scop
            room -= self.scop.promotions[-1].buffer.layout.span
            found.append(promoted)
        if not found:
            return band
        copies = [promoted.loads for promoted in found if promoted.loads is not None]
        filters = [Filter(own_space(copy.domain), copy_band(copy, len(prefix))) for copy in copies]
        inside: Node = Sequence((*filters, Filter(domain.universe(), replace(band, members=points))))
        for promoted in reversed(found):
            inside = Extension(promoted.buffer, promoted.instances, inside)
        return replace(band, members=band.members[:depth], child=inside)

    def operand(
        self, domain: isl.UnionSet, prefix: tuple[Member, ...], points: Items[Member], room: int
    ) -> Promoted | None:
        """The first operand that there is room for, and of which some element is read for several points."""
        for name in program_names(domain, self.scop):
            statement = self.scop.statement(name)
            own = isl.UnionSet.from_set(statement.domain)
            many = math.prod(extent_of(member.function, own) for member in points)
            for operand in _operands(statement, self.scop) if statement.accumulates else ():
                box = bounding_box([operand.relation], prefix, strided=True)
                if box is not None and box.fits_registers(min(room, many // 2)):
                    return _promoted(self.scop, statement, operand, prefix, box)
        return None


@dataclass(frozen=True)
class _Operand:
    """A read of a statement, by position, and the elements that it accesses; ``shared``: its copy in shared memory."""

    position: int
    read: Read
    relation: isl.Map
    shared: Promotion | None


def _operands(statement: ScopStatement, scop: Scop) -> Iterator[_Operand]:
    """Reads of tensors that no statement writes, and of their copies in shared memory."""
    if is_scatter(statement.body):
        return  # few of an owner's instances need what they read, and results are no box
    written = {relation.get_tuple_name(isl.dim_type.out) for own in scop.statements for relation in own.writes}
    buffers = {promotion.buffer.name: promotion for promotion in scop.promotions}
    for position, own in reads_by_position(statement, scop.promotions):
        promotion = buffers.get(own.read.tensor)
        if own.guards or (promotion is not None and (promotion.gathered is not None or not promotion.buffer.shared)):
            continue
        if promotion is None and not has_affine_subscripts(own.read, statement, scop.sizes):
            continue
        relation = statement.reads[position]
        if relation.get_tuple_name(isl.dim_type.out) not in written:
            yield _Operand(position, own.read, relation, promotion)


def _promoted(
    scop: Scop, statement: ScopStatement, operand: _Operand, prefix: tuple[Member, ...], box: Box
) -> Promoted:
    tensor = operand.read.tensor
    if operand.shared is not None:
        tensor = next(t for t in layouts_of(scop) if isl_name(t) == operand.shared.tensor)
    name, order = f"fragment{len(scop.promotions)}_{tensor}", tuple(range(len(box.extents)))
    if operand.shared is None:
        footprint = Footprint((Access(statement.name, operand.position),), prefix, box)
        return promote_accesses(scop, footprint, Placement(name, order, padding=0), stored=False)
    layout = Layout(layouts_of(scop)[tensor].type, box.extents, contiguous_strides(box.extents))
    buffer = Buffer(name, layout, writable=True)
    elements = box_elements(box, name, operand.relation)
    location = locate(operand.relation, prefix_map(statement.domain, prefix), elements)
    label = f"{statement.name}_read{len(scop.promotions)}"
    copy = load_statement(label, location.range(), Tile(tensor, box, buffer, elements))
    copy = _through(copy, operand.shared, prefix, _access(statement, operand.shared))
    changed = _redirected(statement, operand.shared, PromotedAccess(location, operand.relation, True, False), buffer)
    statements = (own for s in scop.statements for own in ((copy, changed) if s is statement else (s,)))
    promotion = Promotion(buffer, elements, label, None)
    scop = replace(scop, statements=tuple(statements), promotions=(*scop.promotions, promotion))
    return Promoted(scop, name, instances_of(scop, (copy,), len(prefix)), copy, None, order)


def _access(statement: ScopStatement, promotion: Promotion) -> PromotedAccess:
    return next(access for access in statement.promoted if access.buffer == promotion.buffer.name)


def _through(copy: ScopStatement, shared: Promotion, prefix: Items[Member], access: PromotedAccess) -> ScopStatement:
    """The copy that reads the elements from shared memory; all threads of a block share one array."""
    (own,) = copy.promoted
    together = [n for n, member in enumerate(prefix) if member.kind is not LoopKind.THREAD][: access.depth]
    # Of all copies: where the domain of those that there are says "exists", isl would repeat it for every member.
    identity = isl.Map.identity(copy.domain.get_space().map_from_set())
    inside = isl.Map.from_domain(identity.domain())
    for position in together:
        single = identity.project_out(isl.dim_type.out, position + 1, copy.domain.dim(isl.dim_type.set) - position - 1)
        inside = inside.flat_range_product(single.project_out(isl.dim_type.out, 0, position))
    location = locate(own.element, inside, shared.elements)
    source = PromotedAccess(location, own.element, True, False, shared.rotation)
    names = tuple(f"{shared.buffer.name}_{n}" for n in range(len(shared.buffer.layout.shape)))
    value = Read(shared.buffer.name, tuple(map(IteratorReference, names)), shared.buffer.layout.type)
    body = replace(copy.body, iterators=(*copy.body.iterators, *names), value=value)
    return replace(copy, body=body, promoted=(source, own))


def _redirected(statement: ScopStatement, shared: Promotion, access: PromotedAccess, buffer: Buffer) -> ScopStatement:
    """The statement that reads the register buffer instead of the copy in shared memory."""
    old = shared.buffer.name
    names = tuple(f"{buffer.name}_{n}" for n in range(len(buffer.layout.shape)))
    gone: list[str] = []

    def redirect(expression: Expression) -> Expression:
        if isinstance(expression, Read) and expression.tensor == old:
            gone.extend(s.name for s in expression.subscripts if isinstance(s, IteratorReference))
            return Read(buffer.name, tuple(map(IteratorReference, names)), expression.type)
        return rebuild(expression, redirect)

    value = redirect(statement.body.value)
    first = statement.body.iterators.index(gone[0]) if gone else 0  # a tensor without dimensions has no subscripts
    iterators = (*statement.body.iterators[:first], *names, *statement.body.iterators[first + len(gone) :])
    promoted = tuple(access if own.buffer == old else own for own in statement.promoted)
    return replace(statement, body=replace(statement.body, iterators=iterators, value=value), promoted=promoted)
