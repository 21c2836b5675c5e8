"""Chooses promotions for a CPU: register blocking, operand packing, cache-resident temporaries.

- A register tile of a reduction's target, with the statements that initialize and finish it where they share its loops,
  is kept in an array that code generation holds in registers.
- An operand that is not contiguous along the vector lanes is packed, once for as many iterations as there is room for.
- A temporary whose every use lies in one iteration of shared loops becomes a buffer of that iteration.
- A result that is written with non-temporal stores is collected in a buffer, a block at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import replace
from functools import partial
from typing import Final, assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.base.remembered import Remembered
from tc.language.isl.affine import isl_name
from tc.language.program.program import Read, iterators_in
from tc.polyhedral.analysis.box import Box, bounding_box, own_space
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.pack import worth_packing
from tc.polyhedral.analysis.paths import paths_below
from tc.polyhedral.analysis.reads import has_affine_subscripts, program_names, touches, value_reads
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.cpu.chunk_steps import runs_steps
from tc.polyhedral.cpu.copy_loops import copy_loops
from tc.polyhedral.cpu.tile_cost import FIRST_CACHE
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.panels import Panels
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.transform.promotion import (
    Access,
    Footprint,
    Placement,
    Promoted,
    accesses_to,
    lanes_last,
    promote_accesses,
    reads_uncovered,
    relation_of,
)
from tc.polyhedral.transform.stream import fits_stream
from tc.polyhedral.transform.tile import is_register
from tc.polyhedral.transform.vectorize import ends_nest

# Terms that a register tile adds up before its results go to memory and back.
_ENOUGH_STEPS: Final = 128
# An operand that is packed once for all steps of a block may be so many times as large: the steps read it anew anyway.
_STEPS: Final = 32


@frozen
class Room:
    """The most elements of a register tile, of a packed operand, and of a temporary in a buffer; 0 promotes none.

    ``lanes``: mark copies for vectors.  ``streamed``: the results that are written by way of buffers.
    ``registers``: of vectors.
    """

    accumulator: int
    operand: int
    temporary: int = 0
    lanes: bool = True
    streamed: frozenset[str] = frozenset()
    registers: int = 32


def promote_tree(tree: ScheduleTree, scop: Scop, room: Room) -> tuple[ScheduleTree, Scop]:
    """The tree with its promotions, and the scop with the copies and the promoted accesses."""
    promoter = _CpuPromoter(scop, room)
    for name, iterator, width in _lanes(tree.root, tree.domain, scop):
        promoter.lanes[name], promoter.widths[name] = iterator, width
    root = promoter.visit(tree.root, tree.domain, ())
    return replace(tree, root=root), promoter.scop


@frozen
class _Operand:
    """A read of a statement, by its position, and the box of what it reads below a prefix."""

    statement: str
    read: int
    original: Read
    box: Box


class _CpuPromoter:
    """Visits the tree; ``scop`` gains the copies and the promoted accesses on the way.

    ``lanes``, ``widths``: of reductions with independent lanes, the iterator that these lie along, and how many there
    are in a register tile.
    """

    def __init__(self, scop: Scop, room: Room) -> None:
        self.scop = scop
        self.room = room
        self.lanes: dict[str, str] = {}
        self.widths: dict[str, int] = {}
        self.worth: Final = Remembered[tuple[int, ...]]()
        self.extents: Final = Remembered[int]()

    def visit(self, node: Node, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        match node:
            case Leaf() | Extension():
                return node
            case Sequence(filters):
                # Buffers belong to a thread, so none may live around a parallel loop.
                if any(m.kind is LoopKind.PARALLEL for m in above) or not _has_parallel(node):
                    found = self.accumulate(node, domain, above) or self.shared(node, domain, above)
                    if found is not None:
                        return found
                return Sequence(
                    tuple(replace(f, child=self.visit(f.child, domain.intersect(f.domain), above)) for f in filters)
                )
            case Band():
                return self.band(node, domain, above)
            case _:
                assert_never(node)

    # --- operands

    def band(self, band: Band, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        """The band, with packed operands and accumulators as far outside as there is room for them."""
        inside = any(m.kind is LoopKind.PARALLEL for m in above)
        first = 0 if inside else _below_parallel(band.members)
        if not inside and _has_parallel(band.child):
            return replace(band, child=self.visit(band.child, domain, (*above, *band.members)))
        for position in range(first, len(band.members) + 1):
            prefix = (*above, *band.members[:position])
            rest = band.members[position:]
            if any(map(is_register, band.members[:position])):
                break
            chooses = self.choosing(band, position, domain, prefix)
            if chooses is not None:
                return self.band(_moved(band, chooses, position), domain, above)
            below: Node = Band(rest, band.permutable, band.child) if rest else band.child
            packed = self.pack(domain, prefix, _STEPS if position == 0 and runs_steps(band) else 1)
            if packed is not None:
                return _band(band, position, self.inside(packed, below, domain, prefix))
            accumulated = self.accumulate(below, domain, prefix)
            if accumulated is not None:
                return _band(band, position, accumulated)
            collected = self.stream(below, domain, prefix)
            if collected is not None:
                return _band(band, position, collected)
        return replace(band, child=self.visit(band.child, domain, (*above, *band.members)))

    def choosing(self, band: Band, position: int, domain: isl.UnionSet, prefix: tuple[Member, ...]) -> int | None:
        """A loop that chooses a part of an operand that fits, behind one whose iterations would all pack that part."""
        repeating, *later = band.members[position:] or (None,)
        if repeating is None or not (band.permutable and repeating.coincident) or is_register(repeating):
            return None
        if self.packable(domain, prefix, 1) is not None or self.packable(domain, (*prefix, repeating), 1) is not None:
            return None
        for behind, member in enumerate(later, position + 1):
            if is_register(member):
                break
            if not member.coincident and self.steps(band.members[behind + 1 :], domain) < _ENOUGH_STEPS:
                break
            found = self.packable(domain, (*prefix, member), 1)
            if found is not None:
                iterator = iterator_of(repeating.function, self.scop.statement(found.statement).body)
                layout = layouts_of(self.scop)[found.original.tensor]
                repeats = iterator is not None and stride(found.original.subscripts, layout, iterator) == 0
                own = isl.UnionSet.from_set(self.scop.statement(found.statement).domain)
                return behind if repeats and extent_of(repeating.function, own) > 1 else None
        return None

    def steps(self, members: Items[Member], domain: isl.UnionSet) -> int:
        """How many terms loops add up."""
        return math.prod(extent_of(member.function, domain) for member in members if not member.coincident)

    def pack(self, domain: isl.UnionSet, prefix: tuple[Member, ...], times: int) -> Promoted | None:
        """The first operand below that is worth packing and fits the room at this prefix, so many times as large."""
        found = self.packable(domain, prefix, times)
        if found is None:
            return None
        buffer = f"packed{len(self.scop.promotions)}_{found.original.tensor}"
        order = lanes_last(found.original.subscripts, self.lanes[found.statement])
        accesses = (Access(found.statement, found.read),)
        placement = self.in_panels(found, Placement(buffer, order))
        promoted = promote_accesses(self.scop, Footprint(accesses, prefix, found.box), placement, stored=False)
        self.scop = promoted.scop
        return promoted

    def in_panels(self, found: _Operand, placement: Placement) -> Placement:
        """The placement in panels as wide as a register tile, each of which lies in the order of the reduction's steps
        (Goto and van de Geijn, Section 4.2.3), where the operand is wider, and larger than a first-level cache.
        """
        box, size = found.box, self.widths.get(found.statement, 0)
        *outer, lane = placement.order
        if math.prod(box.extents) * layouts_of(self.scop)[found.original.tensor].type.itemsize <= FIRST_CACHE:
            return placement
        begins = (box.offsets[lane][0], *box.offsets[lane][1])
        if size < 2 or box.steps[lane] != 1 or box.extents[lane] <= size or any(n % size for n in begins):
            return placement
        kept = iterators_in(self.scop.statement(found.statement).body.subscripts)
        steps = [d for d in outer if not iterators_in((found.original.subscripts[d],)) & kept]
        # Vectors of a window would lie across two panels.
        slides = not iterators_in((found.original.subscripts[lane],)) <= kept
        if slides or not steps:
            return placement
        order = (*(d for d in outer if d not in steps), len(box.extents), *steps, lane)
        return replace(placement, order=order, panels=Panels(lane, size))

    def packable(self, domain: isl.UnionSet, prefix: tuple[Member, ...], times: int) -> _Operand | None:
        """What ``pack`` packs."""
        layouts = layouts_of(self.scop)
        below = program_names(domain, self.scop)
        written = {
            relation.get_tuple_name(isl.dim_type.out) for n in below for relation in self.scop.statement(n).writes
        }
        for name in below:
            statement = self.scop.statement(name)
            lane = self.lanes.get(name)
            if lane is None:
                continue
            for read in self.worth.of(
                (statement, lane), partial(worth_packing, statement, layouts, lane, self.room.registers)
            ):
                box = bounding_box([statement.reads[read]], prefix)
                if box is None or math.prod(box.extents) > times * self.room.operand:
                    continue
                original = value_reads(statement.body)[read]
                if isl_name(original.tensor) in written or not has_affine_subscripts(
                    original, statement, self.scop.sizes
                ):
                    # A copy at the beginning would be older than what is read, or its subscripts unchecked.
                    continue
                return _Operand(name, read, original, box)
        return None

    def inside(
        self,
        promoted: Promoted,
        below: Node,
        domain: isl.UnionSet,
        prefix: tuple[Member, ...],
        *,
        registers: bool = False,
    ) -> Node:
        """The subtree in which the buffer, maybe of ``registers``, lives between its copies; promoted further."""
        layouts = layouts_of(self.scop)

        def copying(copy: ScopStatement) -> Filter:
            loops = copy_loops(copy, len(prefix), promoted.order, layouts, lanes=self.room.lanes, registers=registers)
            return Filter(own_space(copy.domain), loops)

        filters = [Filter(domain.universe(), self.visit(below, domain, prefix))]
        if promoted.loads is not None:
            filters.insert(0, copying(promoted.loads))
        if promoted.stores is not None:
            filters.append(copying(promoted.stores))
        child = filters[0].child if len(filters) == 1 else Sequence(tuple(filters))
        return Extension(promoted.buffer, promoted.instances, child)

    # --- results and temporaries

    def accumulate(self, below: Node, domain: isl.UnionSet, prefix: tuple[Member, ...]) -> Node | None:
        """The subtree with the register tile of a reduction's target in a buffer; None where no whole tile is left."""
        tiles = self.tiles(below, domain)
        for name in program_names(domain, self.scop):
            statement = self.scop.statement(name)
            tensor = statement.body.target
            if name not in tiles:
                continue
            accesses = accesses_to(self.scop, tensor, domain)
            box = self.box(accesses, prefix) if accesses else None
            if accesses is None or box is None or math.prod(box.extents) > self.room.accumulator:
                continue
            order = lanes_last(statement.body.subscripts, self.lanes.get(name))
            buffer = f"tile{len(self.scop.promotions)}_{tensor}"
            promoted = promote_accesses(
                self.scop,
                Footprint(accesses, prefix, box),
                Placement(buffer, order, registers=True),
                stored=not self.stays_inside(tensor, accesses, domain, prefix),
            )
            self.scop = promoted.scop
            return self.inside(promoted, below, domain, prefix, registers=True)
        return None

    def tiles(self, below: Node, domain: isl.UnionSet) -> frozenset[str]:
        """The statements of which the loops that carry a reduction and those of its register tile are left alone."""
        first: dict[str, tuple[Member, ...]] = {}
        for name, members in paths_below(below, domain):
            first.setdefault(name, members)
        return frozenset(name for name, members in first.items() if self.is_tile(members, self.scop.statement(name)))

    def is_tile(self, members: Items[Member], statement: ScopStatement) -> bool:
        """Whether these members are all that such loops have."""
        others = [m for m in members if not is_register(m)]
        if not statement.accumulates or len(others) == len(members) or all(m.coincident for m in others):
            return False
        own = statement.domain
        extents = (
            self.extents.of((m.function, own), partial(extent_of, m.function, isl.UnionSet.from_set(own)))
            for m in others
            if m.coincident
        )
        return all(extent == 1 for extent in extents)

    def stays_inside(
        self, tensor: str, accesses: Items[Access], domain: isl.UnionSet, prefix: tuple[Member, ...]
    ) -> bool:
        """Whether a tensor is a temporary, and each iteration of the prefix reads only what it has written itself."""
        if tensor not in {temporary.name for temporary in self.scop.temporaries}:
            return False
        users = {s.name for s in self.scop.statements if touches(s, tensor)}
        return users <= set(program_names(domain, self.scop)) and not reads_uncovered(self.scop, accesses, prefix)

    def stream(self, below: Node, domain: isl.UnionSet, prefix: tuple[Member, ...]) -> Node | None:
        """The innermost loops with a piece of a result in a buffer; None if nothing is to be written so."""
        if not isinstance(below, Band) or not ends_nest(below.child):
            return None
        if any(member.kind is LoopKind.REGISTER for member in below.members):
            return None
        layouts = layouts_of(self.scop)
        names = program_names(domain, self.scop)
        for tensor in dict.fromkeys(self.scop.statement(name).body.target for name in names):
            accesses = accesses_to(self.scop, tensor, domain) if tensor in self.room.streamed else None
            box = self.box(accesses, prefix) if accesses else None
            if accesses is None or box is None or not fits_stream(box, layouts[tensor]):
                continue
            users = {s.name for s in self.scop.statements if touches(s, tensor)}
            if not users <= set(names) or reads_uncovered(self.scop, accesses, prefix):
                continue
            order = tuple(range(len(box.extents)))
            buffer = f"piece{len(self.scop.promotions)}_{tensor}"
            promoted = promote_accesses(
                self.scop, Footprint(accesses, prefix, box), Placement(buffer, order), stored=True
            )
            self.scop = promoted.scop
            return self.inside(promoted, below, domain, prefix)
        return None

    def shared(self, node: Sequence, domain: isl.UnionSet, prefix: tuple[Member, ...]) -> Node | None:
        """The sequence with one more temporary in a buffer; None if there is none."""
        if not prefix:
            return None
        # What a register tile writes goes from registers to memory; a buffer between them would take their place.
        tiled = {
            self.scop.statement(name).body.target
            for name, members in paths_below(node, domain)
            if self.scop.statement(name).body.reduction is not None
            and any(member.kind is LoopKind.REGISTER for member in members)
        }
        for temporary in self.scop.temporaries:
            if temporary.name in tiled:
                continue
            users = [s.name for s in self.scop.statements if touches(s, temporary.name)]
            if not users:
                continue
            if any(set(users) <= set(statement_names(branch.domain)) for branch in node.filters):
                continue
            accesses = accesses_to(self.scop, temporary.name, domain)
            box = self.box(accesses, prefix) if accesses else None
            if accesses is None or box is None or math.prod(box.extents) > self.room.temporary:
                continue
            if not self.stays_inside(temporary.name, accesses, domain, prefix):
                continue
            buffer = f"local{len(self.scop.promotions)}_{temporary.name}"
            order = tuple(range(len(box.extents)))
            promoted = promote_accesses(
                self.scop, Footprint(accesses, prefix, box), Placement(buffer, order), stored=False
            )
            self.scop = promoted.scop
            return self.inside(promoted, node, domain, prefix)
        return None

    def box(self, accesses: Items[Access], prefix: tuple[Member, ...]) -> Box | None:
        relations = [relation_of(self.scop.statement(access.statement), access) for access in accesses]
        return bounding_box(relations, prefix)


def _moved(band: Band, member: int, to: int) -> Band:
    """The band with a member further outside."""
    members = list(band.members)
    members.insert(to, members.pop(member))
    return replace(band, members=tuple(members))


def _band(band: Band, position: int, below: Node) -> Node:
    """The outer members of the band above a changed subtree."""
    return Band(band.members[:position], band.permutable, below) if position else below


def _below_parallel(members: Items[Member]) -> int:
    return max((n + 1 for n, member in enumerate(members) if member.kind is LoopKind.PARALLEL), default=0)


def _has_parallel(node: Node) -> bool:
    match node:
        case Leaf():
            return False
        case Band(members, _, child):
            return any(m.kind is LoopKind.PARALLEL for m in members) or _has_parallel(child)
        case Sequence(filters):
            return any(_has_parallel(branch.child) for branch in filters)
        case Extension(child=child):
            return _has_parallel(child)
        case _:
            assert_never(node)


def _lanes(node: Node, domain: isl.UnionSet, scop: Scop) -> Iterator[tuple[str, str, int]]:
    """For every reduction with independent lanes, the iterator that they lie along, and how many a tile has."""
    for name, members in paths_below(node, domain):
        lanes = [member for member in members if member.kind is LoopKind.VECTOR]
        body = scop.statement(name).body
        iterator = iterator_of(lanes[-1].function, body) if lanes else None
        if iterator is not None and body.reduction is not None:
            yield name, iterator, extent_of(lanes[-1].function, domain)
