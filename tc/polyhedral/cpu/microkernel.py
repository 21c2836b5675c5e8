"""The micro-kernel of a reduction: which independent loops its register tile holds, how long, and which are the lanes.

Of all tiles that fit the registers it takes the one that ``tc.polyhedral.cpu.tile_cost`` finds cheapest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Final

import islpy as isl

from tc.base.dots import Dot
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.program.program import Call, Expression, iterators_in
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.analysis.strides import greatest_stride
from tc.polyhedral.cpu.tile_cost import TileCosts
from tc.polyhedral.cpu.tile_facts import tile_costs
from tc.polyhedral.ir.dotted import word_of, words_in
from tc.polyhedral.ir.scop import ScopStatement
from tc.targets.machine import VectorUnit

# Carries of a scan that are added to side by side, where there are many rows, and where there are few.
_CARRIES: Final = 8
_FEW_CARRIES: Final = 4
_ENOUGH_ROWS: Final = 64
_LONGEST_ROW: Final = 1 << 13
# Beyond this many vectors of lanes nothing is gained.
_MOST_VECTORS: Final = 4
_MOST_ROWS: Final = 16
# And where these are all rows that there are, some of which have conditions.
_WHOLE_ROWS: Final = 24
# The costs of tiles are known no better than this.
_AS_CHEAP: Final = 1.005
_FLOATING: Final = (ScalarType.FLOAT32, ScalarType.FLOAT64)


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
    ``written`` the tensors that these write, of which nothing can be packed.  ``shared``: statements that write other
    tensors run in the same loops; ``across``: how many accesses of others lie across memory.
    """

    sizes: tuple[tuple[str, int], ...] = ()
    lane: str | None = None
    within: tuple[tuple[str, int], ...] = ()
    chunks: tuple[tuple[str, int], ...] = ()
    steps: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    shared: bool = False
    across: tuple[tuple[str, int], ...] = ()


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
    if not statement.accumulates or not (type in _FLOATING or _is_dot(body.value)):
        return None
    if any(read.tensor == body.target for read in value_reads(body)):
        return None
    chunks = dict(around.chunks)
    costs = tile_costs(
        statement,
        layouts,
        unit,
        packs=packs,
        chunks=chunks,
        written=around.written,
        shared=around.shared,
        across=dict(around.across),
    )
    if not costs.lanes_fit():
        return None
    fixed = dict.fromkeys(around.steps, 1) | dict(around.sizes)
    candidates = _Candidates(
        costs, fixed, around.lane, chunks | dict(around.within), iterators_in(words_in(body.value))
    )
    best = _best(list(candidates.all()), costs)
    if best is None or best[0] >= costs.plain():
        return None
    return best[1]


def _is_dot(value: Expression) -> bool:
    """Whether a value is one that processors add to words of a vector in one instruction."""
    return isinstance(value, Call) and value.function in {word_of(dot).dot for dot in Dot}


def _best(candidates: Sequence[tuple[float, MicroKernel]], costs: TileCosts) -> tuple[float, MicroKernel] | None:
    """The cheapest one, or one as cheap that leaves no remainder: chunks of loops hold whole tiles of several nests."""
    cheapest = min(candidates, key=lambda found: (found[0], costs.beside(found[1].sizes)), default=None)
    if cheapest is None:
        return None
    near = (found for found in candidates if found[0] <= _AS_CHEAP * cheapest[0])
    whole = (found for found in near if all(costs.extents[n] % size == 0 for n, size in found[1].sizes.items()))
    return min(whole, key=lambda found: (found[0], costs.beside(found[1].sizes)), default=cheapest)


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


@frozen
class _Candidates:
    """Tiles that may be taken.

    ``fixed``: sizes that are given; ``lane``: the iterator that vectors lie along, if it is given; ``within``: sizes of
    larger tiles, which those of the register tile must divide.  ``words``: iterators that choose words of elements that
    lie side by side, which are read one by one.
    """

    costs: TileCosts
    fixed: Mapping[str, int]
    lane: str | None
    within: Mapping[str, int]
    words: frozenset[str]

    def all(self) -> Iterator[tuple[float, MicroKernel]]:
        for lane in self.costs.independent if self.lane is None else (self.lane,):
            if lane in self.words or (lane in self.fixed and lane != self.lane):
                continue
            others = [
                name
                for name in self.costs.independent
                if name != lane and name not in self.fixed and self._shares(name)
            ]
            for lanes in self._lane_sizes(lane):
                for rows in self._row_sizes(others):
                    sizes = {**self.fixed, **rows, lane: lanes}
                    cost = self.costs.tile(lane, sizes)
                    if cost is not None:
                        yield cost, MicroKernel(lane, sizes)

    def _shares(self, row: str) -> bool:
        """Whether something that is read is the same in every row."""
        return any(steps[row] == 0 for steps in self.costs.read_strides)

    def _lane_sizes(self, name: str) -> list[int]:
        if name in self.fixed:
            return [self.fixed[name]]
        extent, width = self.costs.extents[name], self.costs.width
        most = _MOST_VECTORS * width
        sizes = {size for size in range(2, min(extent, most) + 1) if extent % size == 0}
        sizes |= {
            count * self.costs.width for count in range(1, _MOST_VECTORS + 1) if count * self.costs.width < extent
        }
        return sorted(size for size in sizes if size >= min(width // 2, extent) and self._divides(name, size))

    def _divides(self, name: str, size: int) -> bool:
        """Whether a larger tile of the loop holds a whole number of register tiles."""
        return self.within.get(name, 0) % size == 0

    def _row_sizes(self, names: list[str]) -> Iterator[dict[str, int]]:
        yield {}
        bordered = self.costs.conditions.parts
        found = {n: _row_sizes(self.costs.extents[n], _WHOLE_ROWS if n in bordered else _MOST_ROWS) for n in names}
        sizes = {n: [size for size in own if self._divides(n, size)] for n, own in found.items()}
        for name in names:
            yield from ({name: size} for size in sizes[name])
        for first, second in combinations(names, 2):
            for one, other in product(sizes[first], sizes[second]):
                if one * other <= self.costs.registers:
                    yield {first: one, second: other}


def _row_sizes(extent: int, whole: int) -> list[int]:
    """Numbers of rows; all of them up to ``whole``."""
    sizes = {size for size in range(2, min(extent, _MOST_ROWS) + 1) if extent % size == 0}
    sizes |= {extent} if 1 < extent <= whole else set()
    return sorted(sizes | {size for size in (4, 6, 8) if size < extent})
