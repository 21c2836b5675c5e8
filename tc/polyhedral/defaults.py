"""Tile sizes for a kernel that nobody has tuned: from the accesses and a budget of first-level cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import islpy as isl

from tc.language.specialization import Layout
from tc.polyhedral.pack import worth_packing
from tc.polyhedral.parallelize import ENOUGH_CHUNKS, volume
from tc.polyhedral.register_tile import default_registers
from tc.polyhedral.scop import Scop, ScopStatement
from tc.polyhedral.strides import iterator_of
from tc.polyhedral.tile import ChooseSizes
from tc.polyhedral.tree import Band, Member, statement_names
from tc.polyhedral.vectorize import ends_nest, extent_of, layouts_of, preference

# Elements of the target that one tile of a reduction updates again and again: half of a 32 KiB first-level cache.
TARGET_ELEMENTS = 4096
# The longest run of contiguous elements in a tile; longer ones evict what the other operands could reuse.
LONGEST_RUN = 512
# Tiles of the two innermost loops around a reduction along contiguous memory share their operands' rows.
ROWS = 16
# Tiles of an element-wise statement that walks one of its tensors across memory, as a transposition does.
SQUARE = 32
# Rows and columns of a tile of register tiles: with a thousand steps of a reduction, operands fill a second-level
# cache.
PANEL = 64
# The same where operands are packed, which costs less the more rows use a packed column, and the steps in one piece.
PACKED_PANEL = 256
STEPS = 256
# With fewer chunks than this a core would wait for another.
FEW_CHUNKS = 4
# A single flat loop is cut into chunks of this size, for the cores outside and the vector lanes inside.
CHUNK = 4096


def default_sizes(scop: Scop, *, packs: bool) -> ChooseSizes:
    """The static rule of the ``cpu`` target; ``packs``: operands that lie across the lanes will be packed."""
    layouts = layouts_of(scop)

    def choose(band: Band, domain: isl.UnionSet, _depth: int) -> tuple[int, ...]:
        heaviest = max(statement_names(domain), key=lambda name: volume(_only(scop, name)))
        return _Rule(scop, band, domain, scop.statement(heaviest), layouts, packs).sizes(_own(band))

    return choose


def _only(scop: Scop, name: str) -> isl.UnionSet:
    return isl.UnionSet.from_set(scop.statement(name).domain)


def _own(band: Band) -> tuple[Member, ...]:
    """Members from which the innermost loop will be chosen: the band's, and those of bands right below it."""
    members = band.members
    node = band.child
    while isinstance(node, Band):
        members = (*members, *node.members)
        node = node.child
    return members


def _panel(extent: int, register: int, panel: int) -> int:
    """The tile of a loop whose register tile has this size: a multiple of it that leaves operands in the cache."""
    return min(extent, register * max(1, panel // register)) if register else 0


def _cut(panels: list[int], registers: tuple[int, ...], extents: list[int], coincident: list[bool]) -> tuple[int, ...]:
    """The panels, halved until some parallel loop has enough of them for the cores."""
    while True:
        chunks = [-(-extent // size) if size else extent for extent, size in zip(extents, panels, strict=True)]
        if max(count for count, parallel in zip(chunks, coincident, strict=True) if parallel) >= FEW_CHUNKS:
            return tuple(panels)
        ratios = [size // register if register else 0 for size, register in zip(panels, registers, strict=True)]
        widest = max(range(len(panels)), key=lambda p: ratios[p])
        if ratios[widest] < 2:
            return tuple(panels)
        panels[widest] = registers[widest] * (ratios[widest] // 2)


@dataclass(frozen=True, slots=True)
class _Rule:
    scop: Scop
    band: Band
    domain: isl.UnionSet
    statement: ScopStatement
    layouts: Mapping[str, Layout]
    packs: bool

    def sizes(self, candidates: tuple[Member, ...]) -> tuple[int, ...]:
        members = self.band.members
        extents = [extent_of(member.function, self.domain) for member in members]
        reduces = self.statement.body.reduction is not None
        inner = self.innermost(candidates)
        if not reduces and ends_nest(self.band.child):
            return self.elementwise(extents, inner)
        if not any(member.coincident for member in members):
            return self.steps(extents)
        if inner is None:
            return tuple(0 for _ in members)
        if not inner.coincident:
            return self.rows(members)
        positions = [position for position, member in enumerate(members) if member is inner]
        if not positions:
            return tuple(0 for _ in members)
        return self.reused_target(members, extents, positions[0])

    def steps(self, extents: list[int]) -> tuple[int, ...]:
        """Loops that carry a reduction: a long one is cut, so that packed operands have a size."""
        long = self.packs and len(extents) == 1 and extents[0] > STEPS
        return (STEPS,) if long else tuple(0 for _ in extents)

    def innermost(self, candidates: tuple[Member, ...]) -> Member | None:
        found = [(preference(m, (self.statement,), self.layouts, self.domain, packs=self.packs), m) for m in candidates]
        usable = [(p.key(), position) for position, (p, _) in enumerate(found) if p is not None]
        return found[min(usable)[1]][1] if usable else None

    def elementwise(self, extents: list[int], inner: Member | None) -> tuple[int, ...]:
        members = self.band.members
        if len(members) == 1:
            return (CHUNK if extents[0] >= 2 * CHUNK else 0,)
        scattered = inner is not None and (found := self.preference_of(inner)) is not None and found > 0
        if not scattered:
            return tuple(0 for _ in members)
        return tuple(SQUARE if member.coincident else 0 for member in members)

    def preference_of(self, member: Member) -> int | None:
        found = preference(member, (self.statement,), self.layouts, self.domain)
        return None if found is None else found.scattered

    def rows(self, members: tuple[Member, ...]) -> tuple[int, ...]:
        """The reduction runs along memory and stays whole; the loops around it share their operands' rows."""
        coincident = [position for position, member in enumerate(members) if member.coincident]
        if len(coincident) < 2:
            return tuple(0 for _ in members)
        return tuple(ROWS if position in coincident[-2:] else 0 for position in range(len(members)))

    def lane(self, member: Member) -> str:
        iterator = iterator_of(member.function, self.statement.body)
        assert iterator is not None
        return iterator

    def registers(self, members: tuple[Member, ...], inner: int) -> tuple[int, ...] | None:
        """The register tile that the band's loops will get, in the order of its members; None for no tile."""
        order = [p for p, member in enumerate(members) if member.coincident and p != inner] + [inner]
        chosen = default_registers(self.scop)(tuple(members[p] for p in order), self.statement)
        if chosen is None:
            return None
        sizes = dict(zip(order, chosen, strict=True))
        return tuple(sizes.get(p, 0) for p in range(len(members)))

    def reused_target(self, members: tuple[Member, ...], extents: list[int], inner: int) -> tuple[int, ...]:
        """The tile's part of the target stays in the cache while the reduction runs over it."""
        registers = self.registers(members, inner)
        if registers is not None:
            packed = self.packs and worth_packing(self.statement, self.layouts, self.lane(members[inner]))
            panel = PACKED_PANEL if packed else PANEL
            panels = [_panel(extent, size, panel) for extent, size in zip(extents, registers, strict=True)]
            return _cut(panels, registers, extents, [member.coincident for member in members])
        sizes = [0] * len(members)
        sizes[inner] = min(extents[inner], LONGEST_RUN)
        budget = TARGET_ELEMENTS // sizes[inner]
        others = [p for p in reversed(range(len(members))) if p != inner and members[p].coincident]
        for position in others:
            if budget < 2:
                break
            sizes[position] = min(extents[position], budget)
            budget //= sizes[position]
        chunks = [-(-extent // size) if size else extent for extent, size in zip(extents, sizes, strict=True)]
        coincident = [p for p, member in enumerate(members) if member.coincident]
        if max(chunks[p] for p in coincident) < ENOUGH_CHUNKS:
            widest = max(coincident, key=lambda p: (extents[p], p != inner))
            if extents[widest] >= ENOUGH_CHUNKS:
                sizes[widest] = -(-extents[widest] // ENOUGH_CHUNKS)
        return tuple(sizes)
