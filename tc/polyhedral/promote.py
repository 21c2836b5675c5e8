"""Promotion: while some loops run, a box of a tensor is kept in a buffer close by (paper, Section 5.5 and A.3).

One mechanism serves every memory: a footprint below a prefix of the schedule whose bounding box has a fixed size, an
extension that copies what is read in and what is written out, and a layout for the box.  Here it keeps the part of a
reduction's target that a register tile updates in an array that the compiler holds in registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import assert_never

import islpy as isl

from tc.grammar.syntax import BinaryOperator
from tc.language.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    IteratorReference,
    Literal,
    Read,
    rebuild,
)
from tc.language.specialization import Layout
from tc.polyhedral.box import Box, bounding_box, box_elements, own_space, prefix_map
from tc.polyhedral.loops import Buffer, LoopKind, StatementBody
from tc.polyhedral.pack import value_reads, worth_packing
from tc.polyhedral.register_tile import first_carried
from tc.polyhedral.scop import PromotedAccess, Promotion, Scop, ScopStatement
from tc.polyhedral.strides import coefficient, iterator_of
from tc.polyhedral.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.vectorize import layouts_of


@dataclass(frozen=True, slots=True)
class Room:
    """What promotion may use: elements of an accumulator, and of a packed operand; 0 promotes none.

    ``lanes``: mark the copies for the compiler's vectorizer.
    """

    accumulator: int
    operand: int
    lanes: bool = True


def promote_tree(tree: ScheduleTree, scop: Scop, room: Room) -> tuple[ScheduleTree, Scop]:
    """Keep targets of innermost reductions in registers, and pack operands that lie across the vector lanes."""
    promoter = _Promoter(scop, room)
    root = promoter.visit(tree.root, tree.domain, ())
    return replace(tree, root=root), promoter.scop


class _Promoter:
    """Visits the tree; ``scop`` gains the copies and the promoted accesses on the way."""

    def __init__(self, scop: Scop, room: Room) -> None:
        self.scop = scop
        self.room = room

    def visit(self, node: Node, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        match node:
            case Leaf() | Extension():
                return node
            case Sequence(filters):
                return Sequence(
                    tuple(replace(f, child=self.visit(f.child, domain.intersect(f.domain), above)) for f in filters)
                )
            case Band(members, _, child):
                if isinstance(child, Leaf) and domain.n_set() == 1:
                    return self.operands(node, domain, above)
                return replace(node, child=self.visit(child, domain, (*above, *members)))
            case _:
                assert_never(node)

    def operands(self, band: Band, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        """The band below packed copies of the operands that are not contiguous along its innermost loop."""
        (name,) = statement_names(domain)
        statement = self.scop.statement(name)
        split = first_carried(band.members, statement, self.scop)
        if split is None:
            return band
        position = _outermost(band.members[:split])
        outer, rest = band.members[:position], band.members[position:]
        prefix = (*above, *outer)
        lane = iterator_of(band.members[-1].function, statement.body)
        copies: list[tuple[str, isl.UnionMap, ScopStatement, tuple[int, ...]]] = []
        for read in worth_packing(statement, layouts_of(self.scop), lane) if lane is not None else ():
            box = bounding_box(statement.reads[read], prefix)
            if box is None or math.prod(box.extents) > self.room.operand:
                continue
            buffer = f"packed{len(self.scop.promotions)}_{value_reads(statement.body)[read].tensor}"
            self.scop, instances, loads, order = promote_operand(self.scop, statement, read, prefix, box, buffer, lane)
            copies.append((buffer, instances, loads, order))
            statement = self.scop.statement(name)
        node = self.accumulator(Band(rest, band.permutable, Leaf()), statement, prefix)
        for buffer, instances, loads, order in reversed(copies):
            filters = (
                Filter(own_space(loads.domain), _copy_loops(loads, len(prefix), self.room, order)),
                Filter(own_space(statement.domain), node),
            )
            node = Extension(buffer, instances, Sequence(filters))
        return Band(outer, band.permutable, node) if outer else node

    def accumulator(self, band: Band, statement: ScopStatement, above: tuple[Member, ...]) -> Node:
        """The band with the target of its reduction in a buffer, where that fits."""
        split = first_carried(band.members, statement, self.scop)
        if split is None:
            return band
        outer, inner = band.members[:split], band.members[split:]
        prefix = (*above, *outer)
        box = bounding_box(statement.writes[0], prefix)
        if box is None or math.prod(box.extents) > self.room.accumulator:
            return band
        name = f"tile{len(self.scop.promotions)}_{statement.body.target}"
        lane = iterator_of(band.members[-1].function, statement.body)
        order = _lanes_last(statement.body.subscripts, lane)
        self.scop, instances, loads, stores = promote_target(self.scop, statement, prefix, box, name, order)
        filters = (
            Filter(own_space(loads.domain), _copy_loops(loads, len(prefix), self.room, order)),
            Filter(own_space(statement.domain), Band(inner, band.permutable, Leaf())),
            Filter(own_space(stores.domain), _copy_loops(stores, len(prefix), self.room, order)),
        )
        extension = Extension(name, instances, Sequence(filters))
        return Band(outer, band.permutable, extension) if outer else extension


def _outermost(members: Items[Member]) -> int:
    """The first position at which a packed operand may be made.

    It is below tile loops of the reduction, which its box must not span, and below the parallel loop, so that every
    thread has its own.
    """
    below = (not member.coincident or member.kind is LoopKind.PARALLEL for member in members)
    return max((position + 1 for position, inside in enumerate(below) if inside), default=0)


# --- promoting -----------------------------------------------------------------------------------------------


def promote_target(
    scop: Scop, statement: ScopStatement, prefix: Items[Member], box: Box, name: str, order: tuple[int, ...]
) -> tuple[Scop, isl.UnionMap, ScopStatement, ScopStatement]:
    """The scop in which the statement updates a buffer, the copies per prefix, and the copy statements.

    ``order``: the dimensions of the buffer from the outermost to the contiguous one.
    """
    body = statement.body
    layout = layouts_of(scop)[body.target]
    buffer = Buffer(
        name, Layout(layout.type, box.extents, _ordered_strides(box.extents, order, pad=False)), writable=True
    )
    frame = _promotion_frame(scop, statement, body.target, statement.writes[0], prefix, box, buffer)
    local = _local_names(buffer)
    changed = replace(
        body,
        iterators=(*body.iterators, *local),
        target=name,
        subscripts=tuple(IteratorReference(n) for n in local),
    )
    access = PromotedAccess(frame.location, statement.writes[0], reads=True, writes=True)
    promoted = replace(statement, body=changed, promoted=(*statement.promoted, access))
    loads, stores = frame.copy("load", load=True), frame.copy("store", load=False)
    promotion = Promotion(buffer, frame.elements, isl.UnionMap.from_map(frame.inside), loads.name, stores.name)
    scop = _replace_statement(scop, statement, (loads, promoted, stores), promotion)
    return scop, _instances(scop, (loads, stores), len(prefix)), loads, stores


def promote_operand(
    scop: Scop, statement: ScopStatement, read: int, prefix: Items[Member], box: Box, name: str, lane: str | None
) -> tuple[Scop, isl.UnionMap, ScopStatement, tuple[int, ...]]:
    """The scop in which one read of the statement goes to a buffer, contiguous along ``lane``; its copies.

    Last, the dimensions of the buffer from the outermost to the contiguous one.
    """
    body = statement.body
    original = value_reads(body)[read]
    layout = layouts_of(scop)[original.tensor]
    order = _lanes_last(original.subscripts, lane)
    buffer = Buffer(
        name, Layout(layout.type, box.extents, _ordered_strides(box.extents, order, pad=True)), writable=True
    )
    frame = _promotion_frame(scop, statement, original.tensor, statement.reads[read], prefix, box, buffer)
    local = _local_names(buffer)
    counter = iter(range(len(value_reads(body))))

    def redirect(expression: Expression) -> Expression:
        if isinstance(expression, Read) and next(counter) == read:
            return Read(name, tuple(IteratorReference(n) for n in local), expression.type)
        return rebuild(expression, redirect)

    changed = replace(body, iterators=(*body.iterators, *local), value=redirect(body.value))
    access = PromotedAccess(frame.location, statement.reads[read], reads=True, writes=False)
    promoted = replace(statement, body=changed, promoted=(*statement.promoted, access))
    loads = frame.copy("pack", load=True)
    promotion = Promotion(buffer, frame.elements, isl.UnionMap.from_map(frame.inside), loads.name, None)
    scop = _replace_statement(scop, statement, (loads, promoted), promotion)
    return scop, _instances(scop, (loads,), len(prefix)), loads, order


# Rows of a packed operand start this many bytes past a multiple of a page's worth of cache sets.
_PAD_BYTES = 64


def _lanes_last(subscripts: tuple[Expression, ...], lane: str | None) -> tuple[int, ...]:
    """The dimensions with those that move along the lane innermost."""
    moving = [lane is not None and coefficient(subscript, lane) not in (0, None) for subscript in subscripts]
    return tuple(sorted(range(len(subscripts)), key=lambda dimension: moving[dimension]))


def _ordered_strides(extents: tuple[int, ...], order: Items[int], *, pad: bool) -> tuple[int, ...]:
    """Strides with the dimensions in this order, outermost first; padded rows spread over the sets of the cache."""
    strides = [0] * len(extents)
    step = 1
    for place, dimension in enumerate(reversed(order)):
        strides[dimension] = step
        step *= extents[dimension]
        if pad and place == 0 and step % 64 == 0:
            step += _PAD_BYTES // 4
    return tuple(strides)


def _local_names(buffer: Buffer) -> tuple[str, ...]:
    return tuple(f"{buffer.name}_{n}" for n in range(len(buffer.layout.shape)))


def _replace_statement(scop: Scop, old: ScopStatement, new: tuple[ScopStatement, ...], promotion: Promotion) -> Scop:
    statements: list[ScopStatement] = []
    for other in scop.statements:
        statements += new if other is old else (other,)
    return replace(scop, statements=tuple(statements), promotions=(*scop.promotions, promotion))


def _instances(scop: Scop, copies: Items[ScopStatement], depth: int) -> isl.UnionMap:
    instances = isl.UnionMap.empty(isl.Space.params_alloc(scop.context, 0))
    for copy in copies:
        instances = instances.union(isl.UnionMap.from_map(_by_prefix(copy.domain, depth)))
    return instances


@dataclass(frozen=True)
class _PromotionFrame:
    """Everything about one buffer that its copies and accesses are made of."""

    statement: str
    tensor: str
    box: Box
    buffer: Buffer
    number: int
    elements: isl.Map
    inside: isl.Map
    location: isl.Map

    def copy(self, what: str, *, load: bool) -> ScopStatement:
        """The statement that copies the touched part of the buffer in or out."""
        name = f"{self.statement}_{what}{self.number}"
        return _copy(name, self.location.range(), self.elements, self.box, self.buffer, self.tensor, load=load)


def _promotion_frame(
    scop: Scop, statement: ScopStatement, tensor: str, access: isl.Map, prefix: Items[Member], box: Box, buffer: Buffer
) -> _PromotionFrame:
    elements = box_elements(box, buffer.name, access)
    inside = prefix_map(statement.domain, prefix)
    location = _locate(access, inside, elements)
    return _PromotionFrame(statement.name, tensor, box, buffer, len(scop.promotions), elements, inside, location)


def _locate(access: isl.Map, inside: isl.Map, elements: isl.Map) -> isl.Map:
    """``{ instance -> buffer[prefix, local] }`` for an access, from where the instance runs and what it touches."""
    depth = inside.dim(isl.dim_type.out)
    anywhere = elements.domain()
    width = anywhere.dim(isl.dim_type.set) - depth
    same_prefix = inside.add_dims(isl.dim_type.out, width).set_tuple_name(isl.dim_type.out, anywhere.get_tuple_name())
    return access.apply_range(elements.reverse()).intersect(same_prefix)


def _copy(
    name: str, touched: isl.Set, elements: isl.Map, box: Box, buffer: Buffer, tensor: str, *, load: bool
) -> ScopStatement:
    """The statement that copies the touched part of the buffer in or out, an instance for every element."""
    domain = touched.set_tuple_name(name)
    depth = len(box.offsets[0][1]) if box.offsets else 0
    prefix = tuple(f"p{n}" for n in range(depth))
    local = tuple(f"a{n}" for n in range(len(box.extents)))
    inner = tuple(IteratorReference(n) for n in local)
    outer = tuple(
        _sum(constant, coefficients, prefix, a) for (constant, coefficients), a in zip(box.offsets, inner, strict=True)
    )
    type, iterators = buffer.layout.type, (*prefix, *local)
    if load:
        body = StatementBody(name, iterators, buffer.name, inner, None, Read(tensor, outer, type))
    else:
        body = StatementBody(name, iterators, tensor, outer, None, Read(buffer.name, inner, type))
    location = isl.Map.identity(touched.get_space().map_from_set()).intersect_domain(touched)
    location = location.set_tuple_name(isl.dim_type.in_, name)
    element = location.apply_range(elements)
    access = PromotedAccess(location, element, reads=not load, writes=load)
    return ScopStatement(name, domain, body, (), (), accumulates=False, promoted=(access,))


def _sum(constant: int, coefficients: Items[int], prefix: Items[str], local: Expression) -> Expression:
    """``constant + sum of coefficient * prefix + local``, without what is 0."""
    total: Expression = local
    for factor, name in zip(coefficients, prefix, strict=True):
        if factor:
            product: Expression = IteratorReference(name)
            if factor != 1:
                product = Binary(BinaryOperator.MULTIPLY, Literal(factor, INDEX_TYPE), product, INDEX_TYPE)
            total = Binary(BinaryOperator.ADD, product, total, INDEX_TYPE)
    return Binary(BinaryOperator.ADD, total, Literal(constant, INDEX_TYPE), INDEX_TYPE) if constant else total


def _by_prefix(domain: isl.Set, depth: int) -> isl.Map:
    """``{ [prefix] -> copy[prefix, local] }``."""
    reverse = isl.Map.identity(domain.get_space().map_from_set()).intersect_domain(domain)
    width = domain.dim(isl.dim_type.set)
    reverse = reverse.project_out(isl.dim_type.in_, depth, width - depth)
    return reverse.reset_tuple_id(isl.dim_type.in_)


# Blocks of this many elements in two dimensions of a copy that turns rows into columns stay in the first cache.
_BLOCK = 16


def _copy_loops(copy: ScopStatement, depth: int, room: Room, order: Items[int] | None = None) -> Node:
    """Loops over the local subscripts: in order for copies along memory, in blocks of the last two for others.

    ``order``: the dimensions of the buffer from its outermost to its contiguous one, where that is not the tensor's.
    """
    local = isl.LocalSpace.from_space(copy.domain.get_space())
    count = copy.domain.dim(isl.dim_type.set) - depth
    functions: list[isl.UnionPwAff] = []
    for dimension in range(count) if order is None else order:
        affine = isl.Aff.var_on_domain(local, isl.dim_type.set, depth + dimension)
        functions.append(isl.UnionPwAff.from_pw_aff(isl.PwAff.from_aff(affine)))
    if not functions:
        return Leaf()
    if order is None or list(order) == list(range(count)):
        members = [Member(function, coincident=True) for function in functions]
        if room.lanes:
            members[-1] = replace(members[-1], kind=LoopKind.VECTOR)
        return Band(tuple(members), permutable=True, child=Leaf())
    block = isl.Val.int_from_si(copy.domain.get_ctx(), _BLOCK)
    whole, turned = functions[:-2], functions[-2:]
    tiles = [function.scale_down_val(block).floor() for function in turned]
    points = [function.mod_val(block) for function in turned]
    return Band(tuple(Member(f, coincident=True) for f in (*whole, *tiles, *points)), permutable=True, child=Leaf())
