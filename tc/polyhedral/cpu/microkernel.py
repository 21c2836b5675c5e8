"""The micro-kernel of a reduction: which independent loops its register tile holds, how long, and which are the lanes.

A static cost model in the manner of Goto and van de Geijn (*Anatomy of high-performance matrix multiplication*, 2008):
inside the reduction a tile of results stays in vector registers; a step of the reduction costs its multiply-adds and
loads, a tile its stores, and an operand that lies across the lanes its packing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations, product
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.pack import can_pack
from tc.polyhedral.analysis.reads import ranging_iterators, value_reads
from tc.polyhedral.analysis.strides import greatest_stride
from tc.polyhedral.ir.loops import LINE_BYTES, StatementBody
from tc.polyhedral.ir.scop import ScopStatement
from tc.targets.machine import VectorUnit

# Cycles, roughly: what matters is how they compare.
_BROADCAST: Final = 0.15  # one element for all lanes, beside the multiply-adds that hide most of it
_STRANGE: Final = 0.4  # the same from rows that lie far from each other
_EVICTED: Final = 0.8  # the same from more rows than a set of the cache has ways, where they meet in one
_WAYS: Final = 8
_FAR: Final = 1 << 15  # so many elements: nothing is fetched ahead for all of them
_LOAD: Final = 0.4  # an aligned vector, likewise
_UNALIGNED: Final = 2.0  # a vector that may lie across two lines of the cache
_FETCHED: Final = 1.0  # a line of the second cache, of rows that lie apart
_FETCHED_FAR: Final = 4.0  # the same of the third one
_STEP: Final = 0.5  # counting and addresses of one step of the reduction
_GATHER: Final = 2.0  # one element that lies across the lanes
_SCATTER: Final = 4.0  # one result that is stored across memory, alone in its line of the cache
_TRANSPOSE: Final = 0.5  # the same where rows of the tile lie side by side in memory
_ALIASED: Final = 2.0  # likewise, if lanes lie so far apart that they meet in a few sets of the cache
_PAGE: Final = 4096  # bytes: so far
_PACK: Final = 1.0  # one element copied into another order
_LATENCY: Final = 4.0  # a multiply-add waits so long for the one before in the same register
_NARROW: Final = 0.55  # a vector of half the width or less
_PARTIAL: Final = 6.0  # a tile with fewer rows or lanes than the others, against a full one
# Registers in which compilers keep elements that several steps of a sliding window read.
_SLIDING: Final = 7
# Carries of a scan that are added to side by side, where there are many rows, and where there are few.
_CARRIES: Final = 8
_FEW_CARRIES: Final = 4
_ENOUGH_ROWS: Final = 64
_LONGEST_ROW: Final = 1 << 13
# Beyond this many vectors of lanes nothing is gained.
_MOST_VECTORS: Final = 4
_MOST_ROWS: Final = 16


# What the lanes of a register tile read during a whole reduction: up to this many bytes of it stay in a second-level
# cache, beside what streams by.
RESIDENT: Final = 1 << 18
# Bytes of a first-level cache.
FIRST_CACHE: Final = 1 << 15
# Beyond that: rows and columns of a tile of register tiles, and the steps of the reduction in one piece.
PANEL: Final = 256
STEPS: Final = 256


@frozen
class MicroKernel:
    """Sizes of the register tile by iterator; ``lane`` is the one along which vectors lie, if they do."""

    lane: str | None
    sizes: Mapping[str, int]

    @property
    def lanes(self) -> int:
        """The size of the tile along which vectors lie; 1 without any."""
        return 1 if self.lane is None else self.sizes[self.lane]


@frozen
class Surroundings:
    """What is given already where a register tile is chosen, by iterator.

    ``sizes``: that it has; ``lane``: the one of these along which vectors lie.  ``within``: sizes of larger tiles,
    which those of the register tile must divide.  ``chunks``: extents of the chunks that cores have of a loop, which
    they must divide, too.  ``steps``: iterators that count steps of blocks, one of which is in a tile at a time, and
    ``written`` the tensors that these write, of which nothing can be packed.
    """

    sizes: tuple[tuple[str, int], ...] = ()
    lane: str | None = None
    within: tuple[tuple[str, int], ...] = ()
    chunks: tuple[tuple[str, int], ...] = ()
    steps: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()


_NOTHING: Final = Surroundings()


def choose_microkernel(
    statement: ScopStatement,
    layouts: Mapping[str, Layout],
    unit: VectorUnit,
    *,
    packs: bool,
    around: Surroundings = _NOTHING,
) -> MicroKernel | None:
    """The cheapest register tile for a floating-point reduction over a box of iterators; None where none helps.

    ``packs``: operands across the lanes may be packed.
    """
    body = statement.body
    type = layouts[body.target].type
    if not statement.accumulates or type not in (ScalarType.FLOAT32, ScalarType.FLOAT64):
        return None
    if not statement.domain.is_box() or any(read.tensor == body.target for read in value_reads(body)):
        return None
    model = _model(statement, layouts, unit, packs=packs, around=around)
    if not model.lanes_fit():
        return None
    best = min(model.candidates(), key=lambda found: (found[0], model.beside(found[1])), default=None)
    if best is None or best[0] >= model.plain():
        return None
    return best[1]


def carried_rows(statement: ScopStatement, layouts: Mapping[str, Layout]) -> MicroKernel | None:
    """Rows of a scan along memory: each adds to a carry of its own, so that none waits for another one's addition.

    None for other statements, for few rows, and for long ones: their lines would meet in the sets of the cache, and
    memory is slower than additions that wait.
    """
    body, steps = statement.body, len(statement.blocks)
    if not (statement.accumulates and steps and statement.domain.is_box()):
        return None
    names = body.iterators[: statement.domain.dim(isl.dim_type.set)]
    reads = value_reads(body)
    if _values(statement.domain, steps - 1) > _LONGEST_ROW:
        return None

    def along(name: str) -> set[int | None]:
        return {greatest_stride(read.subscripts, layouts[read.tensor], name) for read in reads}

    if not any(abs(step or 0) == 1 for name in names[:steps] for step in along(name)):
        return None
    for position in reversed(range(steps, len(names))):
        rows, count = names[position], _values(statement.domain, position)
        size = _CARRIES if count >= _ENOUGH_ROWS else _FEW_CARRIES
        if greatest_stride(body.subscripts, layouts[body.target], rows) and not along(rows) & {1, -1} and count >= size:
            return MicroKernel(None, {rows: size})
    return None


def _values(domain: isl.Set, position: int) -> int:
    """How many values an iterator has."""
    return int(domain.dim_max_val(position).to_python()) + 1 - int(domain.dim_min_val(position).to_python())


def vector_widths(lanes: int, width: int) -> tuple[tuple[int, int], ...]:
    """How ``lanes`` elements are cut into vectors of at most ``width``: the width and the used lanes of each."""
    full, rest = divmod(lanes, width)
    last = ((1 << (rest - 1).bit_length(), rest),) if rest else ()
    return (*((width, width) for _ in range(full)), *last)


def _model(
    statement: ScopStatement,
    layouts: Mapping[str, Layout],
    unit: VectorUnit,
    *,
    packs: bool,
    around: Surroundings,
) -> _Model:
    body, domain = statement.body, statement.domain
    names = body.iterators[: domain.dim(isl.dim_type.set)]
    least = {name: int(domain.dim_min_val(n).to_python()) for n, name in enumerate(names)}
    chunks = dict(around.chunks)
    whole = {name: int(domain.dim_max_val(n).to_python()) - least[name] + 1 for n, name in enumerate(names)}
    extents = {name: chunks.get(name, extent) for name, extent in whole.items()}
    target, reads = layouts[body.target], value_reads(body)
    steps = {name: greatest_stride(body.subscripts, target, name) or 0 for name in names}
    # Rows of a tile that have different ranges would run all of them together.
    ranging = ranging_iterators(body)
    return _Model(
        itemsize=target.type.itemsize,
        width=unit.bytes // target.type.itemsize,
        registers=unit.registers,
        fixed=dict.fromkeys(around.steps, 1) | dict(around.sizes),
        lane=around.lane,
        within=chunks | dict(around.within),
        body=body,
        extents=extents,
        target_strides=steps,
        read_strides=tuple({n: greatest_stride(r.subscripts, layouts[r.tensor], n) for n in names} for r in reads),
        packable=tuple(
            packs and can_pack(statement, position) and read.tensor not in around.written
            for position, read in enumerate(reads)
        ),
        independent=tuple(name for name in names if steps[name] != 0 and least[name] == 0 and name not in ranging),
        reduced=tuple(name for name in names[body.begun :] if steps[name] == 0),
    )


@frozen
class _Model:
    """What the cost of a tile depends on.

    ``extents``: of the iterators.  ``target_strides``, ``read_strides``: how far the element of the target, and of
    every read of the value, moves along each of them; None for a gather.  ``packable``: whether a read may be packed.
    ``independent``: the iterators that choose the element of the target; a tile of one whose range starts above 0 is
    partial.  ``reduced``: the iterators of the reduction.
    """

    itemsize: int
    width: int
    registers: int
    fixed: Mapping[str, int]
    lane: str | None
    within: Mapping[str, int]
    body: StatementBody
    extents: Mapping[str, int]
    target_strides: Mapping[str, int]
    read_strides: tuple[Mapping[str, int | None], ...]
    packable: tuple[bool, ...]
    independent: tuple[str, ...]
    reduced: tuple[str, ...]

    @property
    def steps(self) -> int:
        """Of the reduction."""
        return math.prod(self.extents[name] for name in self.reduced)

    def lanes_fit(self) -> bool:
        return bool(self.independent) and self.steps > 1 and self.width > 1

    def plain(self) -> float:
        """The reduction without a tile: its lanes are partial sums, if memory is contiguous along a reduced loop."""
        instances = math.prod(self.extents.values())
        contiguous = [name for name in self.reduced if all(steps[name] in (0, 1) for steps in self.read_strides)]
        if not contiguous:
            return instances * _GATHER
        extent = max(self.extents[name] for name in contiguous)
        width = min(self.width, extent)
        loads = sum(any(steps[name] for name in contiguous) for steps in self.read_strides)
        return instances / width * (1 + _LOAD * loads) + instances / self.steps * 2 * self.width

    def candidates(self) -> Iterator[tuple[float, MicroKernel]]:
        for lane in self.independent if self.lane is None else (self.lane,):
            if lane in self.fixed and lane != self.lane:
                continue
            others = [
                name for name in self.independent if name != lane and name not in self.fixed and self._shares(name)
            ]
            for lanes in self._lane_sizes(lane):
                for rows in self._row_sizes(others):
                    sizes = {**self.fixed, **rows, lane: lanes}
                    cost = self.cost(lane, sizes)
                    if cost is not None:
                        yield cost, MicroKernel(lane, sizes)

    def _shares(self, row: str) -> bool:
        """Whether something that is read is the same in every row."""
        return any(steps[row] == 0 for steps in self.read_strides)

    def _lane_sizes(self, name: str) -> list[int]:
        if name in self.fixed:
            return [self.fixed[name]]
        extent = self.extents[name]
        most = _MOST_VECTORS * self.width
        sizes = {size for size in range(2, min(extent, most) + 1) if extent % size == 0}
        sizes |= {count * self.width for count in range(1, _MOST_VECTORS + 1) if count * self.width < extent}
        return sorted(size for size in sizes if size >= min(self.width // 2, extent) and self._divides(name, size))

    def _divides(self, name: str, size: int) -> bool:
        """Whether a larger tile of the loop holds a whole number of register tiles."""
        return self.within.get(name, 0) % size == 0

    def _row_sizes(self, names: list[str]) -> Iterator[dict[str, int]]:
        yield {}
        sizes = {n: [size for size in _row_sizes(self.extents[n]) if self._divides(n, size)] for n in names}
        for name in names:
            yield from ({name: size} for size in sizes[name])
        for first, second in combinations(names, 2):
            for one, other in product(sizes[first], sizes[second]):
                if one * other <= self.registers:
                    yield {first: one, second: other}

    def cost(self, lane: str, sizes: Mapping[str, int]) -> float | None:
        """Cycles of the whole statement; None where the tile does not fit the registers."""
        lanes = sizes[lane]
        panels = self._in_panels(lanes)
        vectors = vector_widths(lanes, self.width)
        rows = math.prod(size for name, size in sizes.items() if name != lane)
        spare = _SLIDING if self._slides(sizes, lane) else 2
        if rows * len(vectors) + len(vectors) + spare > self.registers:
            return None
        arithmetic = rows * sum(1.0 if width == self.width else _NARROW for width, _ in vectors)
        step = max(arithmetic, _LATENCY) + _STEP + self._fetched(lane, sizes)
        packing = 0.0
        for position, steps in enumerate(self.read_strides):
            rows_read = [name for name in sizes if name != lane and steps[name] != 0]
            distinct = math.prod(sizes[name] for name in rows_read)
            far = any(abs(steps[name] or 0) > _FAR for name in rows_read)
            along = steps[lane]
            if along == 0:
                meet = distinct > _WAYS and any((steps[n] or 0) * self.itemsize % _PAGE == 0 for n in rows_read)
                step += distinct * (_EVICTED if meet else _STRANGE if far else _BROADCAST)
            elif along == 1:
                cost = _LOAD if self._aligned(steps, lane) else _UNALIGNED
                step += distinct * len(vectors) * (cost + (_STRANGE if far else 0.0))
            elif self.packable[position]:
                step += distinct * len(vectors) * _LOAD
                packing += _PACK * math.prod(self.extents[name] for name, moved in steps.items() if moved != 0)
                if panels:
                    kept = (self.extents[name] for name in self.independent if steps[name] == 0)
                    packing *= math.prod(-(-extent // PANEL) for extent in kept)
            else:
                step += distinct * lanes * _GATHER
        if self.target_strides[lane] == 1:
            stores = float(rows * len(vectors))
        else:
            beside = any(self.target_strides[name] == 1 and size >= 4 for name, size in sizes.items())
            turned = _ALIASED if abs(self.target_strides[lane]) * self.itemsize >= _PAGE else _TRANSPOSE
            stores = rows * lanes * (turned if beside else _SCATTER)
        if panels:
            stores *= 2 * -(-self.steps // STEPS) - 1  # loaded and stored again for every piece of the reduction
        tile = self.steps * step + stores + _LATENCY
        tiles = math.prod(self._tiles(self.extents[name], sizes.get(name, 1)) for name in self.independent)
        outside = math.prod(
            extent for name, extent in self.extents.items() if name not in self.reduced and name not in self.independent
        )
        return tiles * outside * tile + packing

    def _in_panels(self, lanes: int) -> bool:
        """Whether the reduction is cut into pieces."""
        return self.steps * lanes * self.itemsize > RESIDENT

    def _fetched(self, lane: str, sizes: Mapping[str, int]) -> float:
        """Cycles in a step for what lanes read, where the lines of a whole reduction do not stay in the first cache.

        Rows of an operand are longer than a tile, which may use only a part of each line.  Several rows of a tile hide
        what whole lines take.
        """
        rows = math.prod(size for name, size in sizes.items() if name != lane)
        if rows > 1 and sizes[lane] * self.itemsize % LINE_BYTES == 0:
            return 0.0
        lines, cycles = 0, 0.0
        for position, steps in enumerate(self.read_strides):
            in_lanes = steps[lane] == 1 or (steps[lane] != 0 and self.packable[position])
            if in_lanes and any(steps[name] for name in self.reduced):
                distinct = math.prod(size for name, size in sizes.items() if name != lane and steps[name] != 0)
                own = distinct * -(-sizes[lane] * self.itemsize // LINE_BYTES)
                whole = math.prod(extent for name, extent in self.extents.items() if steps[name] != 0)
                lines += own
                cycles += own * (_FETCHED if whole * self.itemsize <= RESIDENT else _FETCHED_FAR)
        piece = STEPS if self._in_panels(sizes[lane]) else self.steps
        return cycles if lines * LINE_BYTES * piece >= FIRST_CACHE else 0.0

    def beside(self, tile: MicroKernel) -> int:
        """Rows side by side in memory; of equal tiles, one with fewer of them asks for more of it at a time."""
        return math.prod(size for name, size in tile.sizes.items() if self.target_strides[name] == 1)

    def _slides(self, sizes: Mapping[str, int], lane: str) -> bool:
        """Whether the next step of the reduction reads what another row reads in this one, as windows do."""
        return any(
            steps[row] not in (None, 0) and steps[row] == steps[step]
            for steps in self.read_strides
            for row, size in sizes.items()
            if row != lane and size > 1
            for step in self.reduced
        )

    def _aligned(self, steps: Mapping[str, int | None], lane: str) -> bool:
        return all(step is not None and step % self.width == 0 for name, step in steps.items() if name != lane)

    @staticmethod
    def _tiles(extent: int, size: int) -> float:
        full, rest = divmod(extent, size)
        return full + (_PARTIAL if rest else 0.0)


def _row_sizes(extent: int) -> list[int]:
    sizes = {size for size in range(2, min(extent, _MOST_ROWS) + 1) if extent % size == 0}
    return sorted(sizes | {size for size in (4, 6, 8) if size < extent})
