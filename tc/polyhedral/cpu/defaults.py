"""Default tile sizes: from the accesses and a budget of first-level cache."""

from __future__ import annotations

import math
from collections.abc import Mapping

import islpy as isl

from tc.base.frozen import frozen
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.extents import extent_of, volume
from tc.polyhedral.analysis.paths import paths_below
from tc.polyhedral.analysis.reads import data_ranges, value_reads
from tc.polyhedral.analysis.scattered import is_scatter
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.cpu.chunk_steps import in_steps
from tc.polyhedral.cpu.parallelize import ENOUGH_CHUNKS
from tc.polyhedral.cpu.tile_cost import PANEL, RESIDENT, STEPS
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import Band, Member, statement_names
from tc.polyhedral.transform.tile import WHOLE, ChooseCuts, Cut, is_register
from tc.polyhedral.transform.vectorize import ends_nest, preference

# Elements of the target that one tile of a reduction updates again and again: half of a 32 KiB first-level cache.
TARGET_ELEMENTS = 4096
# The longest run of contiguous elements in a tile; longer ones evict what the other operands could reuse.
LONGEST_RUN = 512
# Tiles of the two innermost loops around a reduction along contiguous memory share their operands' rows.
ROWS = 16
# Tiles of an element-wise statement that walks one of its tensors across memory, as a transposition does.
SQUARE = 32
# Lanes of independent recurrences stand below their steps, so many at a time: they read rows of memory then.
ACROSS_STEPS = 64
# Columns that are added up beside each other.
STREAMED = 128
# Rows that are long enough to be read one after the other, in pieces of so many elements, and so many rows at a time.
LONG_ROW = 512
LONGEST_PIECE = 4096
ROWS_AT_ONCE = 8
# A single flat loop is cut into chunks of this size, for the cores outside and the vector lanes inside.
CHUNK = 4096


def default_sizes(scop: Scop, *, packs: bool) -> ChooseCuts:
    """The static rule of the ``cpu`` target; ``packs``: operands that lie across the lanes will be packed."""
    layouts = layouts_of(scop)

    def choose(band: Band, domain: isl.UnionSet, _depth: int, points: tuple[Member, ...]) -> tuple[Cut, ...]:
        heaviest = max(statement_names(domain), key=lambda name: volume(_only(scop, name)))
        if data_ranges(scop.statement(heaviest).body):
            return (WHOLE,) * len(band.members)  # tiles would run through all of the ranges again and again
        path = next(members for name, members in paths_below(band, domain) if name == heaviest)
        rule = _Rule(scop, band, domain, scop.statement(heaviest), layouts, packs)
        tile = tuple(filter(is_register, (*points, *path)))
        return tuple(map(Cut, rule.panels(tile, path) if tile else rule.sizes(path)))

    return choose


def _whole_pieces(extent: int, size: int) -> int:
    """The nearest size of pieces of which there is a whole number, if one is near: copies of such ones are one loop."""
    near = [own for own in range(-(-2 * size // 3), 3 * size // 2 + 1) if extent % own == 0]
    return min(near, key=lambda own: abs(own - size), default=size)


def _only(scop: Scop, name: str) -> isl.UnionSet:
    return isl.UnionSet.from_set(scop.statement(name).domain)


def _length(domain: isl.Set, place: int) -> int:
    """From the least to the greatest value of an iterator."""
    return int(domain.dim_max_val(place).to_python()) - int(domain.dim_min_val(place).to_python()) + 1


@frozen
class _Rule:
    scop: Scop
    band: Band
    domain: isl.UnionSet
    statement: ScopStatement
    layouts: Mapping[str, Layout]
    packs: bool

    def sizes(self, candidates: tuple[Member, ...]) -> tuple[int, ...]:
        members = self.band.members
        if is_scatter(self.statement.body):
            return tuple(0 for _ in members)
        extents = [extent_of(member.function, self.domain) for member in members]
        steps = [name for part in in_steps(self.band.child, self.domain) for name in statement_names(part)]
        if steps and self.band.permutable:
            return self.across_steps(steps, extents)
        reduces = self.statement.body.reduction is not None
        inner = self.innermost(candidates)
        if not reduces and ends_nest(self.band.child):
            return self.elementwise(extents, inner)
        if not any(member.coincident for member in members):
            return tuple(0 for _ in extents)
        deep = [name for name, path in paths_below(self.band, self.domain) if len(path) > len(members)]
        if inner is None or len(deep) > 1:
            # Statements that share these loops find what they hand over in the cache.
            return tuple(0 for _ in members)
        if not inner.coincident:
            return self.rows(members)
        positions = [position for position, member in enumerate(members) if member is inner]
        if not positions:
            return tuple(0 for _ in members)
        return self.reused_target(members, extents, positions[0])

    def across_steps(self, names: list[str], extents: list[int]) -> tuple[int, ...]:
        """Of recurrences that are independent of each other, those that lie side by side in memory."""
        statements = tuple(self.scop.statement(name) for name in names)
        found = [preference(member, statements, self.layouts, self.domain) for member in self.band.members]
        usable = [(own.key(), n) for n, own in enumerate(found) if own is not None and own.scattered == 0]
        lanes = min(usable)[1] if usable else None
        return tuple(min(extent, ACROSS_STEPS) if n == lanes else 0 for n, extent in enumerate(extents))

    def innermost(self, candidates: tuple[Member, ...]) -> Member | None:
        found = [(preference(m, (self.statement,), self.layouts, self.domain), m) for m in candidates]
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
        if len(coincident) < 2 or not any(self.shares(members[position]) for position in coincident[-2:]):
            return tuple(0 for _ in members)
        return tuple(ROWS if position in coincident[-2:] else 0 for position in range(len(members)))

    def shares(self, member: Member) -> bool:
        """Whether something that is read is the same for all iterations of a loop."""
        body = self.statement.body
        iterator = iterator_of(member.function, body)
        reads = value_reads(body)
        return iterator is None or any(stride(r.subscripts, self.layouts[r.tensor], iterator) == 0 for r in reads)

    def panels(self, tile: tuple[Member, ...], path: tuple[Member, ...]) -> tuple[int, ...]:
        """Cuts around a register tile: none where what its lanes read in a whole reduction stays in the cache."""
        members = self.band.members
        own = isl.UnionSet.from_set(self.statement.domain)
        body = self.statement.body
        registers = {iterator_of(m.function, body): extent_of(m.function, own) for m in tile}
        steps = body.iterators[: body.begun]
        carried = [m for m in path if not m.coincident and iterator_of(m.function, body) not in steps]
        terms = math.prod(extent_of(m.function, own) for m in carried)
        lanes = max((extent_of(m.function, own) for m in tile if m.kind is LoopKind.VECTOR), default=1)
        itemsize = self.layouts[self.statement.body.target].type.itemsize
        around_steps = next(in_steps(self.band.child, self.domain), None) is not None
        lane = next((iterator_of(m.function, body) for m in tile if m.kind is LoopKind.VECTOR), None)
        if not around_steps and lane is not None and self.reads_once(lane):
            return self.streamed_rows(lane, registers, carried)
        if around_steps or terms * lanes * itemsize <= RESIDENT:
            return tuple(0 for _ in members)
        sizes: list[int] = []
        for member in members:
            size = registers.get(iterator_of(member.function, self.statement.body), 0)
            extent = extent_of(member.function, own)
            if is_register(member) or (not member.coincident and (member is not carried[0] or not self.packs)):
                sizes.append(0)
            elif not member.coincident:
                # Of several loops over terms, the outermost one is cut, so that a piece has as many in all.
                sizes.append(_whole_pieces(extent, max(1, STEPS * extent // terms)))
            else:
                sizes.append(min(extent, max(1, PANEL // max(size, 1))))
        return tuple(sizes)

    def reads_once(self, lane: str) -> bool:
        """Whether what the lanes read is read in one instance each: no tile finds it in the cache again."""
        body, domain = self.statement.body, self.statement.domain
        names = body.iterators[: domain.dim(isl.dim_type.set)]
        reads = [(read.subscripts, self.layouts[read.tensor]) for read in value_reads(body)]
        along = [(subscripts, layout) for subscripts, layout in reads if stride(subscripts, layout, lane) != 0]
        moving = [name for n, name in enumerate(names) if _length(domain, n) > 1]
        return bool(along) and all(stride(*read, name) != 0 for read in along for name in moving)

    def streamed_rows(self, lane: str, registers: Mapping[str | None, int], carried: list[Member]) -> tuple[int, ...]:
        """Cuts of rows that are added up, each element of which is read once: in the order in which they lie in memory.

        Long rows are read in long pieces, a few rows at a time, to sums that stay in the cache; short ones down the
        columns of a few lines.  Several sums share the loops over the rows, and have register tiles there.
        ``registers``: sizes of the tile of a single sum, which cuts of columns are counted in; ``carried``: the loops
        over rows.
        """
        body, domain = self.statement.body, self.statement.domain
        sums = [name for name in statement_names(self.domain) if self.scop.statement(name).accumulates]
        if len(sums) > 1:
            return tuple(0 for _ in self.band.members)
        length = _length(domain, body.iterators.index(lane))
        along = stride(body.subscripts, self.layouts[body.target], lane) == 1
        long = along and length >= LONG_ROW
        # Of a few rows, as of a window, all are read at once in any order of the loops.
        few = math.prod(extent_of(own.function, isl.UnionSet.from_set(domain)) for own in carried) <= ROWS_AT_ONCE
        sizes: list[int] = []
        for member in self.band.members:
            size = max(1, registers.get(iterator_of(member.function, body), 0))
            if self.is_column(member):
                piece = max(1, (LONGEST_PIECE if long else STREAMED) // size)
                # One piece of all columns would only part what else is done with the sums from them.
                parts = (long and not few) or piece < extent_of(member.function, isl.UnionSet.from_set(domain))
                sizes.append(piece if parts else 0)
            else:
                sizes.append(ROWS_AT_ONCE * (long and bool(carried) and member is carried[-1]))
        return tuple(sizes)

    def is_column(self, member: Member) -> bool:
        """Whether a loop goes along memory in what the statement writes, and is none of a register tile."""
        body = self.statement.body
        iterator = iterator_of(member.function, body)
        if iterator is None or not member.coincident or is_register(member):
            return False
        return stride(body.subscripts, self.layouts[body.target], iterator) == 1

    def reused_target(self, members: tuple[Member, ...], extents: list[int], inner: int) -> tuple[int, ...]:
        """The tile's part of the target stays in the cache while the reduction runs over it."""
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
