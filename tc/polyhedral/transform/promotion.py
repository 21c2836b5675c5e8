"""Making a promotion: accesses to a box of a tensor go to a buffer, with copies in and out (paper, 5.5 and A.3).

One mechanism serves every memory: a footprint below a prefix of the schedule whose bounding box has a fixed size, an
extension that copies what is read in and what is written out, and a layout for the box.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import assert_never

import islpy as isl

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.affine import isl_name
from tc.language.program.affine_form import coefficient
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    IteratorReference,
    Literal,
    Read,
    rebuild,
)
from tc.language.program.specialization import Layout, contiguous_strides
from tc.polyhedral.analysis.box import Box, box_elements, prefix_map
from tc.polyhedral.analysis.reads import has_affine_subscripts, program_names, touches, value_reads
from tc.polyhedral.analysis.scattered import is_scatter
from tc.polyhedral.ir.gathered import Gathered
from tc.polyhedral.ir.loops import Buffer, Sharing, StatementBody
from tc.polyhedral.ir.panels import Panels
from tc.polyhedral.ir.scop import (
    PromotedAccess,
    Promotion,
    Rotation,
    Scop,
    ScopStatement,
    layouts_of,
    reads_by_position,
)
from tc.polyhedral.ir.swizzle import Swizzle
from tc.polyhedral.ir.tree import Member
from tc.polyhedral.transform.buffer_layouts import (
    Padding,
    ordered_strides,
    padded_layout,
    panel_layout,
    tile_strides,
)
from tc.polyhedral.transform.fill import fill


@dataclass(frozen=True)
class Access:
    """One access of a statement that is promoted: a read of its value by position, or None for its target."""

    statement: str
    read: int | None


@dataclass(frozen=True)
class Promoted:
    """A scop with one more promotion: its copies, None where none are needed, and the order of the buffer's dimensions.

    ``order``: from the outermost dimension to the contiguous one.  ``instances``: of the copies, by prefix.
    """

    scop: Scop
    buffer: str
    instances: isl.UnionMap
    loads: ScopStatement | None
    stores: ScopStatement | None
    order: tuple[int, ...]


@dataclass(frozen=True)
class Footprint:
    """What goes to a buffer: accesses, all to one tensor, whose elements lie in a box for every value of the prefix.

    ``gathered``: what the one access reads through an index.
    """

    accesses: Items[Access]
    prefix: Items[Member]
    box: Box
    gathered: Gathered | None = None


@dataclass(frozen=True)
class Placement:
    """The buffer that a footprint goes to.

    ``order``: of its dimensions, from the outermost one to the contiguous one.  ``sharing``: which threads have one
    array together.  ``padding``: elements added to every row.  ``rotation``: of the buffer, which is then one for
    all iterations of the last member of the prefix.  ``registers``: it is a register tile.  ``panels``: of a dimension;
    their number is one more in ``order``, behind all others of the box.  ``room``: the extents of the buffer, where it
    has more places than the box.  ``swizzle``: that of the buffer.
    """

    name: str
    order: tuple[int, ...]
    sharing: Sharing = Sharing.THREAD
    padding: int | Padding = Padding.CACHES
    rotation: Rotation | None = None
    registers: bool = False
    panels: Panels | None = None
    room: tuple[int, ...] | None = None
    swizzle: Swizzle | None = None

    def layout(self, type: ScalarType, box: Box, *, written: bool) -> Layout:
        """How the elements of the box lie in the buffer; ``written``: whether a statement writes some of them."""
        box = box if self.room is None else replace(box, extents=self.room)
        if self.sharing is Sharing.LANES:
            # Each thread has its elements of the last dimension in an array of its own.
            return Layout(type, box.extents, (*contiguous_strides(box.extents[:-1]), 0))
        if self.panels is not None:
            return panel_layout(type, box, self.order, self.panels)
        if self.registers and len(box.extents) > 0:
            return Layout(type, box.extents, tile_strides(box.extents, self.order))
        match self.padding:
            case Padding.CACHES:
                return Layout(type, box.extents, ordered_strides(box.extents, self.order, pad=not written))
            case Padding.BANKS:
                return padded_layout(type, box, self.order, None, self.rotation)
            case int():
                return padded_layout(type, box, self.order, self.padding, self.rotation)
            case _:
                assert_never(self.padding)


@dataclass(frozen=True)
class Tile:
    """A box of a tensor in a buffer.  ``elements``: ``{ buffer[prefix, local] -> element }``."""

    tensor: str
    box: Box
    buffer: Buffer
    elements: isl.Map
    rotation: Rotation | None = None
    gathered: Gathered | None = None
    panels: Panels | None = None


def promote_accesses(scop: Scop, footprint: Footprint, placement: Placement, *, stored: bool) -> Promoted:
    """The scop in which the footprint goes to a buffer that is new for every value of its prefix.

    What is read before it is written is loaded first; with ``stored``, what is written is stored last.
    """
    accesses, prefix, box, gathered = footprint.accesses, footprint.prefix, footprint.box, footprint.gathered
    name, rotation = placement.name, placement.rotation
    statements = {access.statement: scop.statement(access.statement) for access in accesses}
    one = statements[accesses[0].statement]
    tensor = _tensor(scop, one, accesses[0])
    writes = any(access.read is None for access in accesses)
    layout = placement.layout(layouts_of(scop)[tensor].type, box, written=writes)
    elements = box_elements(box, name, relation_of(one, accesses[0], gathered))
    buffer = Buffer(name, layout, writable=True, sharing=placement.sharing, swizzle=placement.swizzle)
    tile = Tile(tensor, box, buffer, elements, rotation, gathered, placement.panels)
    changed: dict[str, ScopStatement] = {}
    for statement in statements.values():
        own = [access for access in accesses if access.statement == statement.name]
        changed[statement.name] = _redirect(scop, statement, own, prefix_map(statement.domain, prefix), tile)
    number = len(scop.promotions)
    first, last = next(iter(statements)), next(reversed(statements))
    missing, written = _uncovered([changed[s.name] for s in scop.statements if s.name in changed], name)
    if gathered is None and _is_constant(scop, missing.apply(elements)):
        missing = fill(missing, elements, box)
    loads = stores = None
    if not missing.is_empty():
        loads = load_statement(f"{first}_{'load' if writes else 'pack'}{number}", missing, tile)
    if stored and not written.is_empty():
        stores = store_statement(f"{last}_store{number}", written, tile)
    promotion = Promotion(
        buffer, elements, _name(loads), _name(stores), rotation, gathered, placement.registers, placement.panels
    )
    copies = tuple(copy for copy in (loads, stores) if copy is not None)
    scop = replace(
        scop,
        statements=_with_copies(scop, changed, loads, stores),
        promotions=(*scop.promotions, promotion),
    )
    return Promoted(scop, name, instances_of(scop, copies, len(prefix)), loads, stores, placement.order)


def reads_uncovered(scop: Scop, accesses: Items[Access], prefix: Items[Member]) -> bool:
    """Whether some iteration of the prefix reads an element that it has not written before."""
    covered: isl.Map | None = None
    for statement in scop.statements:
        own = [access for access in accesses if access.statement == statement.name]
        inside = prefix_map(statement.domain, prefix).reverse() if own else None
        for access in sorted(own, key=lambda access: access.read is None):
            assert inside is not None
            touched = inside.apply_range(relation_of(statement, access))
            reads = access.read is not None or statement.body.reduction is not None
            if reads and (covered is None or not touched.is_subset(covered)):
                return True
            if access.read is None:
                covered = touched if covered is None else covered.union(touched)
    return False


def _tensor(scop: Scop, statement: ScopStatement, access: Access) -> str:
    reads = reads_by_position(statement, scop.promotions)
    return next((own.read.tensor for position, own in reads if position == access.read), statement.body.target)


def relation_of(statement: ScopStatement, access: Access, gathered: Gathered | None = None) -> isl.Map:
    """``{ instance -> element }`` of the access, in the sense of the program, or of what is gathered."""
    if gathered is not None:
        return gathered.relation(statement.domain)
    return statement.writes[0] if access.read is None else statement.reads[access.read]


def _redirect(
    scop: Scop, statement: ScopStatement, accesses: Items[Access], inside: isl.Map, tile: Tile
) -> ScopStatement:
    """The statement with these accesses in the buffer; every one has local subscripts of its own."""
    body, buffer, gathered = statement.body, tile.buffer, tile.gathered
    promoted = list(statement.promoted)
    iterators = list(body.iterators)
    local: dict[int | None, tuple[Expression, ...]] = {}
    for access in sorted(accesses, key=lambda access: -1 if access.read is None else access.read):
        relation = relation_of(statement, access, gathered)
        suffix = "" if access.read is None else f"r{access.read}"
        names = tuple(f"{buffer.name}{suffix}_{n}" for n in range(len(buffer.layout.shape)))
        iterators += names
        local[access.read] = tuple(IteratorReference(name) for name in names)
        reads = access.read is not None or body.reduction is not None
        location = locate(relation, inside, tile.elements)
        promoted.append(PromotedAccess(location, relation, reads, access.read is None, tile.rotation, tile.panels))
    positions = (position for position, _ in reads_by_position(statement, scop.promotions))

    def redirect(expression: Expression) -> Expression:
        if isinstance(expression, Read):
            position = next(positions)
            if position in local:
                for _ in range(0 if gathered is None else gathered.inside):
                    next(positions)
                return Read(buffer.name, local[position], expression.type)
        return rebuild(expression, redirect)

    value = redirect(body.value)
    changed = replace(body, iterators=tuple(iterators), value=value)
    if None in local:
        changed = replace(changed, target=buffer.name, subscripts=local[None])
    return replace(statement, body=changed, promoted=tuple(promoted))


def _uncovered(statements: Items[ScopStatement], buffer: str) -> tuple[isl.Set, isl.Set]:
    """Places of the buffer that are read before they are written, in program order, and all that are written."""
    missing: isl.Set | None = None
    written: isl.Set | None = None
    for statement in statements:
        own = [access for access in statement.promoted if access.buffer == buffer]
        for access in sorted(own, key=lambda access: access.writes):
            places = access.location.range()
            if missing is None or written is None:
                missing = written = isl.Set.empty(places.get_space())
            if access.reads:
                missing = missing.union(places.subtract(written))
            if access.writes:
                written = written.union(places)
    assert missing is not None
    assert written is not None
    return missing.coalesce(), written.coalesce()


def _is_constant(scop: Scop, touched: isl.Set) -> bool:
    """Whether no statement writes the tensor."""
    written = {relation.get_tuple_name(isl.dim_type.out) for s in scop.statements for relation in s.writes}
    return touched.get_tuple_name() not in written


def _name(statement: ScopStatement | None) -> str | None:
    return None if statement is None else statement.name


def _with_copies(
    scop: Scop, changed: dict[str, ScopStatement], loads: ScopStatement | None, stores: ScopStatement | None
) -> tuple[ScopStatement, ...]:
    """All statements in program order: loads stand before the first changed one, stores after the last.

    But what reads the tensor itself, behind the last one that writes the buffer, reads what was stored.
    """
    names = [statement.name for statement in scop.statements if statement.name in changed]
    last = names[-1] if stores is None else _last_before_others(scop, changed, stores)
    statements: list[ScopStatement] = []
    for statement in scop.statements:
        if loads is not None and statement.name == names[0]:
            statements.append(loads)
        statements.append(changed.get(statement.name, statement))
        if stores is not None and statement.name == last:
            statements.append(stores)
    return tuple(statements)


def _last_before_others(scop: Scop, changed: dict[str, ScopStatement], stores: ScopStatement) -> str:
    """The last changed statement, or the last one before what touches the tensor when all is written."""
    buffer, last = stores.promoted[0].buffer, ""
    writing = [name for name, s in changed.items() if any(a.writes and a.buffer == buffer for a in s.promoted)]
    for statement in scop.statements:
        if statement.name in changed:
            last = statement.name
        elif not writing and touches(statement, stores.body.target):
            break
        writing = [name for name in writing if name != statement.name]
    return last


def lanes_last(subscripts: tuple[Expression, ...], lane: str | None) -> tuple[int, ...]:
    """The dimensions with those that move along the lane innermost."""
    moving = [lane is not None and coefficient(subscript, lane) not in (0, None) for subscript in subscripts]
    return tuple(sorted(range(len(subscripts)), key=lambda dimension: moving[dimension]))


def instances_of(scop: Scop, copies: Items[ScopStatement], depth: int) -> isl.UnionMap:
    """``{ [values of the outermost members] -> instance }`` for all instances of copies."""
    instances = isl.UnionMap.empty(isl.Space.params_alloc(scop.context, 0))
    for copy in copies:
        instances = instances.union(isl.UnionMap.from_map(_by_prefix(copy.domain, depth)))
    return instances


def locate(access: isl.Map, inside: isl.Map, elements: isl.Map) -> isl.Map:
    """``{ instance -> buffer[prefix, local] }`` for an access, from where the instance runs and what it touches."""
    depth = inside.dim(isl.dim_type.out)
    anywhere = elements.domain()
    width = anywhere.dim(isl.dim_type.set) - depth
    same_prefix = inside.add_dims(isl.dim_type.out, width).set_tuple_name(isl.dim_type.out, anywhere.get_tuple_name())
    return access.apply_range(elements.reverse()).intersect(same_prefix)


def load_statement(name: str, touched: isl.Set, tile: Tile) -> ScopStatement:
    """The statement that copies the touched part of the buffer in, an instance for every element."""
    iterators, inner, outer = _subscripts(tile)
    value = Read(tile.tensor, outer, tile.buffer.layout.type)
    if tile.gathered is not None:
        value = replace(tile.gathered.read, subscripts=tile.gathered.at(outer))
    body = StatementBody(name, iterators, tile.buffer.name, inner, None, value)
    return _copy(body, touched, tile, load=True)


def store_statement(name: str, touched: isl.Set, tile: Tile) -> ScopStatement:
    """The statement that copies the touched part of the buffer out, an instance for every element."""
    iterators, inner, outer = _subscripts(tile)
    value = Read(tile.buffer.name, inner, tile.buffer.layout.type)
    return _copy(StatementBody(name, iterators, tile.tensor, outer, None, value), touched, tile, load=False)


def _subscripts(tile: Tile) -> tuple[tuple[str, ...], tuple[Expression, ...], tuple[Expression, ...]]:
    """The iterators of a copy, and its subscripts of the buffer and of the tensor.

    The number of the slot is one more iterator; the number of the panel, and what is inside of it, are two.
    """
    box = tile.box
    prefix = tuple(f"p{n}" for n in range(box.depth))
    local = tuple(f"a{n}" for n in range(len(box.extents)))
    inner = tuple(IteratorReference(n) for n in local)
    outer = tuple(
        _sum(constant, coefficients, prefix, _in_run(a, step, run))
        for (constant, coefficients), step, run, a in zip(box.offsets, box.steps, box.runs, inner, strict=True)
    )
    if tile.panels is not None:
        cut = tuple(f"{tile.buffer.name}_{part}" for part in ("panel", "within"))
        others = (reference for n, reference in enumerate(inner) if n != tile.panels.dimension)
        return (*prefix, *local, *cut), (*map(IteratorReference, cut), *others), outer
    if tile.rotation is None:
        return (*prefix, *local), inner, outer
    slot = f"{tile.buffer.name}_slot"
    return (*prefix, *local, slot), (IteratorReference(slot), *inner), outer


def _copy(body: StatementBody, touched: isl.Set, tile: Tile, *, load: bool) -> ScopStatement:
    location = isl.Map.identity(touched.get_space().map_from_set()).intersect_domain(touched)
    location = location.set_tuple_name(isl.dim_type.in_, body.name)
    access = PromotedAccess(location, location.apply_range(tile.elements), not load, load, tile.rotation, tile.panels)
    domain = touched.set_tuple_name(body.name)
    return ScopStatement(body.name, domain, body, (), (), accumulates=False, promoted=(access,))


def _sum(constant: int, coefficients: Items[int], prefix: Items[str], local: Expression) -> Expression:
    """``constant + sum of coefficient * prefix + local``, without what is 0."""
    total: Expression = local
    for factor, name in zip(coefficients, prefix, strict=True):
        if factor:
            total = Binary(BinaryOperator.ADD, _times(factor, IteratorReference(name)), total, INDEX_TYPE)
    return Binary(BinaryOperator.ADD, total, Literal(constant, INDEX_TYPE), INDEX_TYPE) if constant else total


def _in_run(local: Expression, step: int, run: int) -> Expression:
    """How far an element is behind the first one, where so many are side by side every so many."""
    if run == 1:
        return _times(step, local)
    quotient, rest = (
        Binary(operator, local, Literal(run, INDEX_TYPE), INDEX_TYPE)
        for operator in (BinaryOperator.DIVIDE, BinaryOperator.REMAINDER)
    )
    return Binary(BinaryOperator.ADD, _times(step, quotient), rest, INDEX_TYPE)


def _times(factor: int, value: Expression) -> Expression:
    return value if factor == 1 else Binary(BinaryOperator.MULTIPLY, Literal(factor, INDEX_TYPE), value, INDEX_TYPE)


def _by_prefix(domain: isl.Set, depth: int) -> isl.Map:
    """``{ [prefix] -> copy[prefix, local] }``."""
    reverse = isl.Map.identity(domain.get_space().map_from_set()).intersect_domain(domain)
    width = domain.dim(isl.dim_type.set)
    reverse = reverse.project_out(isl.dim_type.in_, depth, width - depth)
    return reverse.reset_tuple_id(isl.dim_type.in_)


def accesses_to(scop: Scop, tensor: str, domain: isl.UnionSet) -> tuple[Access, ...] | None:
    """Every access to the tensor below; None if some subscript is not affine: it is checked where it is used."""
    found: list[Access] = []
    for name in program_names(domain, scop):
        statement = scop.statement(name)
        reads = [n for n, read in enumerate(value_reads(statement.body)) if read.tensor == tensor]
        if not all(has_affine_subscripts(value_reads(statement.body)[n], statement, scop.sizes) for n in reads):
            return None
        relations = [r for r in statement.reads if r.get_tuple_name(isl.dim_type.out) == isl_name(tensor)]
        writes = statement.body.target == tensor
        if writes and is_scatter(statement.body):
            return None
        implicit = int(writes and statement.body.reduction is not None)
        if len(relations) != len(reads) + implicit or not all(r.is_single_valued() for r in relations):
            return None
        found += [Access(name, n) for n in reads]
        found += [Access(name, None)] if writes else []
    return tuple(found)
