"""What a register tile costs: a static model of the loops around a reduction, in the manner of Goto and van de Geijn.

Inside the reduction a tile of results stays in vector registers; a step of the reduction costs its multiply-adds and
loads, a tile its stores, and an operand that is copied its packing (*Anatomy of high-performance matrix
multiplication*, 2008).  The constants were fitted to times of single products on a Cascade Lake processor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from tc.base.frozen import frozen
from tc.polyhedral.cpu.borders import Conditions
from tc.polyhedral.cpu.windows import window_lines
from tc.polyhedral.ir.loops import LEAST_ROWS_AT_BORDERS, LINE_BYTES, MOST_ROWS_AT_BORDERS

# Cycles, roughly: what matters is how they compare.
_BROADCAST: Final = 0.15  # one element for all lanes, beside the multiply-adds that hide most of it
_STRANGE: Final = 0.4  # the same from rows that lie far from each other
_CROWDED: Final = 0.25  # the same from as many rows as a set of the cache has ways, where they meet in one
_EVICTED: Final = 0.8  # the same from more of them
_WAYS: Final = 8
_FAR: Final = 1 << 15  # so many elements: nothing is fetched ahead for all of them
_LOAD: Final = 0.4  # an aligned vector, likewise
_BOTH: Final = 1.2  # likewise, where multiply-adds wait for loads: of each there are two in a cycle
_UNALIGNED: Final = 2.0  # a vector that may lie across two lines of the cache
_FETCHED: Final = 1.0  # a line of the second cache, of rows that lie apart
_FETCHED_FAR: Final = 4.0  # the same of the third one
_STEP: Final = 0.5  # counting and addresses of one step of the reduction
_PRESSED: Final = 0.6  # a load beyond the share of the multiply-adds that leaves the load ports idle at times
_LOADS: Final = 0.7  # that share
_LINE: Final = 4.5  # a line that lanes read, where those of a whole reduction do not stay in the first cache
_STREAMED: Final = 4.0  # what lanes read in one step, where a whole reduction does not stay in the first cache
_GATHER: Final = 2.0  # one element that lies across the lanes
_SCATTER: Final = 4.0  # one result that is stored across memory, alone in its line of the cache
_TRANSPOSE: Final = 0.5  # the same where rows of the tile lie side by side in memory
_ALIASED: Final = 2.0  # likewise, if lanes lie so far apart that they meet in a few sets of the cache
_CUT: Final = 16.0  # likewise, if lanes all meet in one set, of rows that no half of a line holds whole
_ALONE: Final = 28.0  # one element that nothing copies, if lanes meet in sets of the cache that do not hold them
_PART: Final = 10.0  # one lane of rows side by side of which the last square of four is not full
_REFETCHED: Final = 8.0  # a line of a window, where all windows of a reduction meet in a set of the cache
_ACROSS: Final = 1.03  # a tile whose lanes lie across memory, against one of the same cost whose lanes do not
# With few registers and more than a few steps, as of AVX2 (fitted to times on a Zen 3 processor): an unaligned vector,
# half of which lie in one line, tiles whose lanes lie across memory,
# others with rows of two loops, one element of a window whose rows lie pages apart, and one packed from aliased lanes.
_UNALIGNED_FEW: Final = 1.15
_ACROSS_FEW: Final = 1.12
_TWO_LOOPS_FEW: Final = 1.1
_STRANGE_FEW: Final = 0.8
_PACK_FEW: Final = 6.0
# With so few, long sums wait for the ones before where a tile has less than this many vectors of them, and tiles with
# fewer rows take this part of the time of others, and their share of the rest.
_LONG_SUM: Final = 256
_CHAINS_FEW: Final = 12
_CHAIN_FEW: Final = 0.5
_FEWER_ROWS_FEW: Final = 0.85
_PAGE: Final = 4096  # bytes: so far
_HALF_LINE: Final = LINE_BYTES // 2
_PACK: Final = 1.0  # one element copied into another order
_COPY: Final = 0.3  # one element copied in the same order
_TERM: Final = 1.3  # one term of a sum without lanes, which lie beside each other in a run
_SHORT_RUN: Final = 8  # terms of a run that is too short for that
_LATENCY: Final = 4.0  # a multiply-add waits so long for the one before in the same register
_NARROW: Final = 0.55  # a vector of half the width or less
_FEWER_ROWS: Final = 0.5  # full tiles that one with fewer rows takes beyond its share of them
_FEWER_LANES: Final = 0.7  # likewise, with fewer lanes
_FEWER_SHARED: Final = 3.0  # likewise, with fewer rows beside other statements: sums leave the registers
_IN_PIECES: Final = 1.15  # a tile whose results leave the registers and come back, against one that keeps them
# Steps of a window of which each is a vector of its own where lanes skip elements, as in pooling.
_SHORT_WINDOW: Final = 4
# Registers in which compilers keep elements that several steps of a window read: with many registers, or in few steps.
_SLIDING: Final = 7
_SHORT: Final = 144
_MANY_REGISTERS: Final = 32
# Steps of a tile that a border cuts, against others: where lanes are cut, where whole rows are left out, and both.
_CUT_LANES: Final = 2.0
_CUT_ROWS: Final = 1.3
_CUT_BOTH: Final = 10.0

# What the lanes of a register tile read during a whole reduction: up to this many bytes of it stay in a second-level
# cache, beside what streams by.
RESIDENT: Final = 3 << 17
# Bytes of a first-level cache.
FIRST_CACHE: Final = 1 << 15
# Beyond that: rows and columns of a tile of register tiles, and the steps of the reduction in one piece.
PANEL: Final = 256
STEPS: Final = 256


@frozen
class _Read:
    """What a tile does for one operand: vectors and elements that it loads in a step, the cycles of that, and those of
    packing the operand.
    """

    loads: int
    cycles: float
    packing: float = 0.0


@frozen
class TileCosts:
    """What the cost of a tile depends on.

    ``extents``: of the iterators.  ``target_strides``, ``read_strides``: how far the element of the target, and of
    every read of the value, moves along each of them; None for a gather.  ``packable``: whether a read may be packed;
    ``copied``: by the iterator of the lanes, which reads are packed though they lie along them.  ``windows``: of every
    read, the iterators that are in a subscript together with one of the reduction.  ``independent``: the iterators that
    choose the element of the target; a tile of one whose range starts above 0 is partial.  ``reduced``: the iterators
    of the reduction.  ``shared``: other statements run in the same loops.  ``across``: how many of their accesses lie
    across memory, by iterator.  ``gaps``: of every read, the iterators that skip elements of a dimension; ``spread``:
    those of the target.
    """

    itemsize: int
    width: int
    registers: int
    extents: Mapping[str, int]
    target_strides: Mapping[str, int]
    read_strides: tuple[Mapping[str, int | None], ...]
    copied: Mapping[str, tuple[int, ...]]
    packable: tuple[bool, ...]
    windows: tuple[frozenset[str], ...]
    independent: tuple[str, ...]
    reduced: tuple[str, ...]
    shared: bool
    conditions: Conditions
    across: Mapping[str, int]
    gaps: tuple[frozenset[str], ...]
    spread: frozenset[str]

    @property
    def steps(self) -> int:
        """Of the reduction."""
        return math.prod(self.extents[name] for name in self.reduced)

    @property
    def reads_once(self) -> bool:
        """Whether each element of some operand is read in one instance: no cache holds it for another one."""
        moving = [name for name, extent in self.extents.items() if extent > 1]
        return any(all(steps[name] for name in moving) for steps in self.read_strides)

    def lanes_fit(self) -> bool:
        """Whether there is something that vectors could lie along."""
        return bool(self.independent) and self.steps > 1 and self.width > 1

    def plain(self) -> float:
        """The reduction without a tile: its lanes are partial sums, if memory is contiguous along a reduced loop."""
        instances = math.prod(self.extents.values())
        contiguous = [name for name in self.reduced if all(steps[name] in (0, 1) for steps in self.read_strides)]
        if not contiguous:
            return instances * _GATHER
        extent = max(map(self._run, contiguous))
        width = min(self.width, extent)
        loads = sum(any(steps[name] for name in contiguous) for steps in self.read_strides)
        term = max(1 + _LOAD * loads, _BOTH * loads)
        # Compilers keep partial sums of the innermost loop alone.
        lanes = instances / width * term + instances / extent * 2 * self.width
        return lanes if extent <= _SHORT_RUN else min(lanes, instances * _TERM)

    def _run(self, innermost: str) -> int:
        """The steps of reduced loops that lie end to end in all that is read, of which one loop is made."""
        extent, left = self.extents[innermost], [name for name in self.reduced if name != innermost]
        while True:
            further = [extent * (steps[innermost] or 0) for steps in self.read_strides]
            name = next((n for n in left if [steps[n] for steps in self.read_strides] == further), None)
            if name is None:
                return extent
            extent *= self.extents[name]
            left.remove(name)

    def tile(self, lane: str, sizes: Mapping[str, int]) -> float | None:
        """Cycles of the whole statement; None where the tile does not fit the registers, or its lanes have no form."""
        lanes = sizes[lane]
        positions = range(len(self.read_strides))
        if lane in self.spread or (self.conditions.parts and not all(self._in_vectors(n, lane) for n in positions)):
            return None
        panels = self._in_panels(lanes)
        vectors = len(vector_widths(lanes, self.width))
        rows = math.prod(size for name, size in sizes.items() if name != lane)
        if rows * vectors + vectors + self._spare(sizes, lane) > self.registers:
            return None
        reads = [self._read(position, lane, sizes) for position in positions]
        across = self.target_strides[lane] != 1
        stores = self._stored_across(lane, sizes) if across else float(rows * vectors)
        if panels:
            stores *= 2 * -(-self.steps // STEPS) - 1  # loaded and stored again for every piece of the reduction
        step = self._step(lane, sizes, reads) * (_IN_PIECES if panels else 1.0) * self._shape(lane, sizes)
        fewer = _FEWER_SHARED if self.shared or panels else _FEWER_ROWS
        tiles = math.prod(
            self._tiles(self.extents[name], sizes.get(name, 1), _FEWER_LANES if name == lane else fewer)
            for name in self.independent
        )
        outside = math.prod(
            extent for name, extent in self.extents.items() if name not in self.reduced and name not in self.independent
        )
        stores += rows * lanes * self._beside(lane, lanes)
        steps = self.steps * self._filled(lane, sizes)
        return tiles * outside * (steps * step + stores + _LATENCY) + sum(read.packing for read in reads)

    @property
    def _few_registers(self) -> bool:
        return self.registers < _MANY_REGISTERS and self.steps > _SHORT

    @property
    def _long_in_few(self) -> bool:
        return self._few_registers and self.steps > _LONG_SUM

    @property
    def _unaligned(self) -> float:
        return _UNALIGNED_FEW if self._few_registers else _UNALIGNED

    def _shape(self, lane: str, sizes: Mapping[str, int]) -> float:
        """What a step costs, against one of the same loads and multiply-adds of the simplest tile."""
        if (across := self.target_strides[lane] != 1) and not self._few_registers:
            return _ACROSS
        loops = sum(size > 1 for name, size in sizes.items() if name != lane)
        return _ACROSS_FEW if across else _TWO_LOOPS_FEW if loops > 1 and self._few_registers else 1.0

    def _filled(self, lane: str, sizes: Mapping[str, int]) -> float:
        """The part of the steps in which some point of a tile is in the iteration domain, weighted by what such steps
        cost on average, against those of tiles that no border cuts.
        """
        rows = {name: size for name, size in sizes.items() if size > 1 and name not in self.copied_rows(lane, sizes)}
        filled = self.conditions.density / math.prod(self.conditions.parts.get(name, 1.0) for name in rows)
        cut = {name: self.conditions.cut(name, size, self.extents[name]) for name, size in rows.items()}
        most = (_CUT_BOTH if sum(map(bool, cut.values())) > 1 else _CUT_LANES) if cut.get(lane) else _CUT_ROWS
        return filled * (most - (most - 1) * math.prod(1 - part for part in cut.values()))

    def copied_rows(self, lane: str, sizes: Mapping[str, int]) -> frozenset[str]:
        """The iterators of rows whose conditions are settled by copies of the tiles at borders, and of their steps
        (``tc.polyhedral.separate.unroll_borders``); none where that is not known.
        """
        rows = {name: size for name, size in sizes.items() if size > 1 and name != lane}
        found = frozenset(name for name, size in sizes.items() if size > 1 and name in self.conditions.parts)
        groups = {self.conditions.together[name] for name in found}
        steps = frozenset[str]().union(*groups) - found
        if not found or lane in found or not steps <= set(self.reduced):
            return frozenset()
        if len(found) == 1:
            (name,) = found
            copies = self.conditions.copies(name, rows[name], self.extents[name])
            least = 1
        else:
            pieces = (-(-self.extents[name] // rows[name]) for name in found)
            copies = math.prod(pieces) * math.prod(self.extents[name] for name in steps)
            least = LEAST_ROWS_AT_BORDERS if len(groups) > 1 else 1
        text = None if copies is None else copies * max(least, math.prod(rows.values()))
        return found if text is not None and text <= MOST_ROWS_AT_BORDERS else frozenset()

    def _step(self, lane: str, sizes: Mapping[str, int], reads: list[_Read]) -> float:
        """Cycles of a step of the reduction."""
        rows = math.prod(size for name, size in sizes.items() if name != lane)
        vectors = vector_widths(sizes[lane], self.width)
        arithmetic = rows * sum(1.0 if width == self.width else _NARROW for width, _ in vectors)
        loads = sum(read.loads for read in reads)
        pressed = _PRESSED * max(0.0, loads - _LOADS * rows * len(vectors))
        fetched = 0.0
        if not self.reads_once:
            streamed = _STREAMED if self.steps * sizes[lane] * self.itemsize > 2 * FIRST_CACHE else 0.0
            fetched = streamed + self._fetched(lane, sizes)
        waiting = pressed + fetched + sum(read.cycles for read in reads)
        if self._long_in_few:
            waiting += _CHAIN_FEW * max(0, _CHAINS_FEW - rows * len(vectors))
        waiting += _REFETCHED * self._refetched(lane, sizes)
        together = (self.conditions.together[name] for name in self.copied_rows(lane, sizes))
        loops = not any(self.reduced[-1] in own for own in together)
        return max(arithmetic, _LATENCY, _LINE * self._lines(lane, sizes)) + _STEP * loops + waiting

    def _lines(self, lane: str, sizes: Mapping[str, int]) -> float:
        """The lines of the cache that lanes read in a step, if those of a whole reduction do not stay in the first.

        0 where rows share nothing: whatever the tile, each is read once.
        """
        rows = {name: size for name, size in sizes.items() if name != lane and size > 1}
        read = 0
        for position, steps in enumerate(self.read_strides):
            if steps[lane] == 1 or (steps[lane] != 0 and self.packable[position]):
                read += sizes[lane] * self.itemsize * math.prod(size for name, size in rows.items() if steps[name] != 0)
        return read / LINE_BYTES if rows and self.steps * read >= FIRST_CACHE else 0.0

    def _refetched(self, lane: str, sizes: Mapping[str, int]) -> float:
        """The lines in a step of what all lanes read in windows, where each window evicts the one before."""
        found = 0.0
        for steps in self.read_strides:
            own = [(abs(steps[name] or 0), self.extents[name]) for name in self.reduced]
            apart, count = max(own)
            if steps[lane] == 0 and apart * self.itemsize % _PAGE == 0 and count > _WAYS:
                tile = [(abs(steps[name] or 0), size) for name, size in sizes.items()]
                found += window_lines(own, tile, LINE_BYTES // self.itemsize)
        return found

    def _read(self, position: int, lane: str, sizes: Mapping[str, int]) -> _Read:
        steps = self.read_strides[position]
        rows_read = {name: size for name, size in sizes.items() if name != lane and steps[name] != 0}
        distinct = math.prod(rows_read.values())
        strides = [steps[name] or 0 for name in rows_read]
        vectors = distinct * len(vector_widths(sizes[lane], self.width))
        if steps[lane] == 0:
            apart = max(map(abs, strides), default=0) * self.itemsize >= _PAGE and self.windows[position]
            one = _STRANGE_FEW if apart and self._few_registers else self._broadcast(distinct, strides)
            return _Read(distinct, distinct * one + self._crossed(steps, rows_read))
        copies = self._copies(steps, sizes[lane])
        if steps[lane] == 1:
            if position in self.copied[lane]:
                cost = self._unaligned if lane in self.windows[position] else _LOAD
                return _Read(vectors, vectors * cost, _COPY * copies)
            cost = _LOAD if self._aligned(steps, lane) else self._unaligned
            return _Read(vectors, vectors * (cost + (_STRANGE if _are_far(strides) else 0.0)))
        # Nothing is copied that few instances read; lanes far apart are then read one by one, each in its own line.
        step = steps[lane] or 0
        alone = position not in self.copied[lane] and abs(step) * self.itemsize >= LINE_BYTES
        if self.packable[position] and not alone and not self._skips(position, lane):
            crowded = self._few_registers and step * self.itemsize % _PAGE == 0 and sizes[lane] >= _WAYS
            return _Read(vectors, vectors * _LOAD, (_PACK_FEW if crowded else _PACK) * copies)
        meet = alone and self._meet(step, sizes[lane])
        return _Read(0, distinct * sizes[lane] * (_ALONE if meet else _GATHER))

    def _meet(self, step: int, count: int) -> bool:
        """Whether so many elements, each so far from the one before, lie in sets of the cache that do not hold them."""
        return count > _WAYS * (_PAGE // math.gcd(step * self.itemsize, _PAGE))

    def _in_vectors(self, position: int, lane: str) -> bool:
        """Whether lanes with conditions have a form for what is read."""
        if self.read_strides[position][lane] in (0, 1):
            return True
        return lane not in self.conditions.parts and position in self.copied[lane] and not self._skips(position, lane)

    def _skips(self, position: int, lane: str) -> bool:
        """Whether lanes read every second element or less, in a window of many steps or in none: copies keep gaps.

        In short windows, too, where other loops may have the lanes, all of which read the same element.
        """
        steps = self.read_strides[position]
        shared = any(steps[name] == 0 and self.extents[name] >= self.width for name in self.independent)
        if lane in self.gaps[position] and (shared or lane not in self.windows[position]):
            return True
        inside = (name for name in self.reduced if 0 < abs(steps[name] or 0) < abs(steps[lane] or 0))
        return lane in self.windows[position] and any(self.extents[name] > _SHORT_WINDOW for name in inside)

    def _beside(self, lane: str, lanes: int) -> float:
        """Cycles for what other statements read and write across memory beside one result: nothing transposes that."""
        count = self.across.get(lane, 0)
        return count * (_ALONE if self._meet(self.target_strides[lane], lanes * (count + 1)) else _SCATTER)

    def _stored_across(self, lane: str, sizes: Mapping[str, int]) -> float:
        """Cycles for the results of a tile whose lanes lie across memory, turned in squares of four and more."""
        rows = math.prod(size for name, size in sizes.items() if name != lane)
        beside = self.beside(sizes)
        parts = _PART * rows / beside if beside > 4 and beside % 4 else 0.0
        return sizes[lane] * (rows * self._scattered(lane, sizes) + parts)

    def _scattered(self, lane: str, sizes: Mapping[str, int]) -> float:
        """Cycles for one result, where the lanes of a tile lie across memory."""
        beside = self.beside(sizes)
        apart = abs(self.target_strides[lane]) * self.itemsize
        if apart % _PAGE == 0 and beside * self.itemsize % _HALF_LINE != 0:
            return _CUT
        if beside < 4:
            return _SCATTER
        return _ALIASED if apart >= _PAGE else _TRANSPOSE

    def _broadcast(self, rows: int, strides: list[int]) -> float:
        """Cycles for one element of each of so many rows, which lie these strides apart."""
        meet = any(stride * self.itemsize % _PAGE == 0 for stride in strides)
        if meet and rows >= _WAYS:
            return _CROWDED if rows == _WAYS else _EVICTED
        return _STRANGE if _are_far(strides) else _BROADCAST

    def _crossed(self, steps: Mapping[str, int | None], rows: Mapping[str, int]) -> float:
        """Cycles in a step for elements that are read across lines, which have left the cache in the next tile."""
        strides = [abs(steps[name] or 0) * self.itemsize for name in self.reduced if steps[name] != 0]
        if not strides or min(strides) < LINE_BYTES:
            return 0.0
        beside = [size for name, size in rows.items() if steps[name] == 1]
        lines = -(-math.prod(beside) * self.itemsize // LINE_BYTES) * math.prod(rows.values()) // math.prod(beside)
        if lines * LINE_BYTES * self.steps <= FIRST_CACHE:
            return 0.0
        return lines * (_FETCHED_FAR if any(stride % _PAGE == 0 for stride in strides) else _FETCHED)

    def _copies(self, steps: Mapping[str, int | None], lanes: int) -> int:
        """How many elements of an operand are copied: all of it, and again for each panel of the others."""
        elements = math.prod(self.extents[name] for name, moved in steps.items() if moved != 0)
        kept = (self.extents[name] for name in self.independent if steps[name] == 0)
        return elements * (math.prod(-(-extent // PANEL) for extent in kept) if self._in_panels(lanes) else 1)

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

    def beside(self, sizes: Mapping[str, int]) -> int:
        """Rows side by side in memory; of equal tiles, one with fewer of them asks for more of it at a time.

        Loops that lie end to end are one, as those over the elements of a window that slides by its own width.
        """
        count = 1
        for name, size in sorted(sizes.items(), key=lambda own: abs(self.target_strides[own[0]])):
            if self.target_strides[name] == count:
                count *= size
                if size < self.extents[name]:
                    break
        return count

    def _tiles(self, extent: int, size: int, beyond: float) -> float:
        """How many full tiles take as long; ``beyond``: of a partial one, beyond its share."""
        full, rest = divmod(extent, size)
        if self._long_in_few and beyond == _FEWER_ROWS:
            partial = _FEWER_ROWS_FEW + (1 - _FEWER_ROWS_FEW) * rest / size
        else:
            partial = rest / size + beyond
        return full + (partial if rest else 0.0)

    def _spare(self, sizes: Mapping[str, int], lane: str) -> int:
        """Registers beside those of results and of what lanes read."""
        keeps = not self._few_registers and (self._slides(sizes, lane) or self.copied_rows(lane, sizes))
        return _SLIDING if keeps else 2

    def _slides(self, sizes: Mapping[str, int], lane: str) -> bool:
        """Whether the next step of the reduction reads what another row reads in this one, as windows do."""
        return any(
            steps[row] not in (None, 0) and abs(steps[row] or 0) == abs(steps[step] or 0)
            for steps in self.read_strides
            for row, size in sizes.items()
            if row != lane and size > 1
            for step in self.reduced
        )

    def _aligned(self, steps: Mapping[str, int | None], lane: str) -> bool:
        return all(step is not None and step % self.width == 0 for name, step in steps.items() if name != lane)


def _are_far(strides: Iterable[int]) -> bool:
    """Whether rows lie so far apart that nothing is fetched ahead for all of them."""
    return any(abs(stride) > _FAR for stride in strides)


def vector_widths(lanes: int, width: int) -> tuple[tuple[int, int], ...]:
    """How ``lanes`` elements are cut into vectors of at most ``width``: the width and the used lanes of each."""
    full, rest = divmod(lanes, width)
    last = ((1 << (rest - 1).bit_length(), rest),) if rest else ()
    return (*((width, width) for _ in range(full)), *last)
