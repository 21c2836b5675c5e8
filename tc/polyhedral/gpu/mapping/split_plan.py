"""Which reductions are split over threads, warps or blocks (split-K), and how their partial results are combined."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Final

from tc.base.dots import Dot
from tc.base.frozen import frozen
from tc.language.program.program import IteratorReference, Statement, iterators_in
from tc.language.program.specialization import Specialization
from tc.language.program.within import ranges_in
from tc.language.program.written_elements import is_scatter, written_iterators
from tc.polyhedral.analysis.reuse import product_loops
from tc.polyhedral.analysis.strides import stride
from tc.polyhedral.gpu.mapping.grid_defaults import ENOUGH_STEPS
from tc.polyhedral.gpu.mapping.reread_rows import row_threads
from tc.polyhedral.ir.chained import Chain, Recomputed
from tc.polyhedral.ir.contractions import Contraction
from tc.polyhedral.ir.loops import LANES
from tc.polyhedral.ir.splits import Share
from tc.polyhedral.schedule.scan import Scanning
from tc.polyhedral.schedule.scatter import length_of
from tc.polyhedral.schedule.split import Dealing, reads_of, walk_of
from tc.targets.machine import GpuMachine
from tc.targets.options import GpuOptions
from tc.targets.resolve import known


class Whose(Enum):
    """Which statements a step splits."""

    REDUCTIONS = "reductions"  # those of the program
    TOTALS = "totals"  # those that combine the partial results of the step before
    ACROSS_BLOCKS = "across blocks"  # those that combine what blocks have


@frozen
class Step:
    """One step: some reductions get so many partial results; ``required``: it is an error if none does."""

    parts: int
    dealing: Dealing
    whose: Whose
    required: bool = False


@frozen
class Group:
    """Reductions that are split alike.

    ``parts``: partial results in the threads of a block, by step.  ``blocks``: that share each reduction (split-K).
    ``among``: the names of the statements that are split; None for all.  ``required_parts``, ``required_blocks``: they
    were asked for explicitly.  ``lanes``: the lanes of a warp combine their partial results by shuffles.  ``pairs``:
    these are dealt to lanes as the sums of matrix instructions are.
    """

    parts: tuple[int, ...] = ()
    blocks: int = 1
    among: frozenset[str] | None = None
    required_parts: bool = False
    required_blocks: bool = False
    lanes: bool = False
    pairs: bool = False

    @property
    def steps(self) -> tuple[Step, ...]:
        """In order."""
        return tuple(self._steps())

    def _steps(self) -> Iterator[Step]:
        if self.blocks > 1:
            yield Step(self.blocks, Dealing.RUNS, Whose.REDUCTIONS, self.required_blocks)
        yield from self._in_block(self.parts, Whose.REDUCTIONS)
        if self.blocks > 1 and self.parts:
            # A second kernel has few results to combine.
            yield from self._in_block((LANES,), Whose.ACROSS_BLOCKS)

    def _in_block(self, parts: tuple[int, ...], whose: Whose) -> Iterator[Step]:
        """Lanes combine partial results where each has one of its own, not what they have combined before."""
        if parts:
            required = self.required_parts and whose is Whose.REDUCTIONS
            yield Step(parts[0], Dealing.PAIRS if self.pairs else Dealing.TURNS, whose, required)
        own = True
        for before, after in itertools.pairwise((*parts, 1)):
            own, by_lanes = False, self.lanes and own and before == after * LANES
            if by_lanes or after > 1:
                yield Step(after, Dealing.LANES if by_lanes else Dealing.TURNS, Whose.TOTALS)


@frozen
class Plan:
    """What is done to reductions; by default nothing.

    ``groups``: how they are split.  ``wide``: the statements whose sums are accumulated in float64 in memory.
    ``recurrences``: which linear ones are in parts, before all else.  ``scans``: what grows is computed as a scan, and
    how, before anything is split.  ``shares``: how scatters are shared.  ``counts``: indices that are declared distinct
    are counted, and checked.  ``deterministic``: atomic updates do not depend on their order.  ``transposes``: operands
    that products read across memory are transposed.  ``pulls``: reductions are in pull form.  ``joins``: rows that
    lie end to end are one.  ``rereads``: so are loops over rows of so many elements that are read again; 0 for none.
    ``hoists``: what many instances share is computed once.  ``dots``: which products are dot products of words.
    ``chunks``: the temporaries that hold what leaves a block for a chunk of its steps.  ``chain``: products that share
    a kernel, with what is computed once more for them, in the order in which it is found.
    """

    groups: tuple[Group, ...] = ()
    wide: frozenset[str] = frozenset()
    scans: Scanning | None = None
    recurrences: Scanning | None = None
    shares: tuple[Share, ...] = ()
    counts: bool = False
    deterministic: bool = True
    transposes: bool = False
    pulls: bool = False
    joins: bool = False
    rereads: int = 0
    hoists: bool = False
    dots: tuple[Dot, ...] = ()
    chunks: tuple[Contraction, ...] = ()
    chain: Chain | None = None
    again: tuple[Recomputed, ...] = ()

    @property
    def parts(self) -> tuple[int, ...]:
        """Of the first group that threads of a block share."""
        return next((group.parts for group in self.groups if group.parts), ())

    @property
    def blocks(self) -> int:
        """The most blocks that share a reduction."""
        return max((group.blocks for group in self.groups), default=1)


# Reductions with at least so many iterations are split by default: into the lanes of a warp, or into the threads of a
# block, whose results are combined in two steps.
_SPLIT_FROM: Final = ((512, (256, 16)), (64, (32,)))
_SPLIT_FOR_LANES: Final = ((512, (256, 8)), (64, (32,)))
# Iterations that are worth a block of their own, where there are few results.
_FOR_A_BLOCK: Final = 4096
# Reductions across memory with at least so many iterations are shared by blocks.
_SPLIT_ACROSS_FROM: Final = 256
# Products with at least so many steps are; how many results a tile then has, and how many steps each block at least.
_SPLIT_PRODUCT_FROM: Final = 512
_SPLIT_IN_TWO_FROM: Final = 2048  # where there are almost enough tiles of this size
_SPLIT_TILE: Final = 64 * 64
_LEAST_SPLIT_STEPS: Final = 64
# The sides of the largest tile, with which shared memory is read least, and bytes of the elements that it is for.
_SIDE: Final = 128
_BYTES: Final = 4


def plan_split(specialization: Specialization, options: GpuOptions, machine: GpuMachine) -> Plan:
    """What the options say, or else ``default_groups``."""
    lanes = known(options.shuffles)
    if options.block is not None:
        machine = replace(machine, most_threads=min(machine.most_threads, machine.block_threads))
    if options.split_k_threads is None:
        tiled = options.schedule.tile is not None or options.block is not None
        groups = tuple(default_groups(specialization, machine, lanes=lanes, tiled=tiled))
    else:
        groups = (Group(options.split_k_threads, required_parts=True, lanes=lanes),)
    if options.split_k_blocks is None:
        return Plan(groups)
    return Plan(
        tuple(replace(own, blocks=options.split_k_blocks, required_blocks=True) for own in groups or (Group(),))
    )


def default_groups(
    specialization: Specialization, machine: GpuMachine, *, lanes: bool, tiled: bool = False
) -> Iterator[Group]:
    """Splits the reductions along which memory is read where nothing is read along another loop, but no products.

    The threads of a block share the operands of these, and read them in runs of any direction.  Several blocks share
    long ones if there are few.  Blocks share reductions across memory, sums of columns, and long products of few
    results.  ``tiled``: options say how large tiles or blocks are.
    """
    statements = specialization.program.statements
    of_product = partial(_of_product, tiled=tiled)
    rows = tuple(_rows(specialization, machine, lanes=lanes))
    yield from rows
    taken = frozenset[str]().union(*(own.among or () for own in rows))
    for blocks_of in (_across, of_product):
        wanted: dict[int, set[str]] = {}
        for statement in statements:
            if statement.name not in taken:
                wanted.setdefault(blocks_of(statement, specialization, machine), set()).add(statement.name)
        yield from (Group(blocks=blocks, among=frozenset(wanted[blocks])) for blocks in sorted(wanted) if blocks > 1)


def _rows(specialization: Specialization, machine: GpuMachine, *, lanes: bool) -> Iterator[Group]:
    """Those along which memory is read, if some are long: as many threads share rows of one length."""
    found = {s.name: length for s in specialization.program.statements if (length := _length(s, specialization))}
    for least, parts in _SPLIT_FOR_LANES if lanes else _SPLIT_FROM:
        among = frozenset(name for name, length in found.items() if length >= least)
        if not among:
            continue
        blocks = min(_blocks(specialization, machine, name, found[name]) for name in among)
        if blocks > 1 or parts == (LANES,):
            yield Group(parts, blocks, among, lanes=lanes)
            return
        by_threads: dict[int, set[str]] = {}
        for name in among:
            by_threads.setdefault(_threads(specialization, machine, found, name), set()).add(name)
        for count in sorted(by_threads):
            totals = count // LANES if lanes else parts[-1]
            yield Group((count, totals), blocks, frozenset(by_threads[count]), lanes=lanes)
        return


def _threads(specialization: Specialization, machine: GpuMachine, lengths: Mapping[str, int], name: str) -> int:
    """The most threads that any reduction over rows of the same length wants to share one."""
    alike = (own for own in specialization.program.statements if lengths.get(own.name) == lengths[name])
    return max(row_threads(own, lengths[name], specialization, machine) for own in alike)


def _length(statement: Statement, specialization: Specialization) -> int:
    """Iterations of a reduction that its partial results may share; 0 where it is left alone."""
    reduced = {i.name for i in statement.iterators if i not in written_iterators(statement)}
    along = _along(statement, specialization)
    if not along or not along <= reduced or _is_product(statement) or _stays_whole(statement):
        return 0
    return max(_iterations(statement, specialization, name) for name in along)


def _stays_whole(statement: Statement) -> bool:
    """Whether partial results would each run through all indices, or through ranges that are short."""
    return is_scatter(statement) or bool(ranges_in(statement.value))


def _across(statement: Statement, specialization: Specialization, machine: GpuMachine) -> int:
    """Partial results of a reduction across memory that give many threads something to do; 1 where it is left alone.

    Both kernels add up in a row, so there are no more of them than each has terms.
    """
    reduced = [i.name for i in statement.iterators if i not in written_iterators(statement)]
    along = _along(statement, specialization)
    if along <= set(reduced) or _is_product(statement) or _stays_whole(statement):
        return 1
    length = max((_iterations(statement, specialization, name) for name in reduced), default=0)
    if length < _SPLIT_ACROSS_FROM:
        return 1
    results = math.prod(specialization.layouts[statement.target].shape)
    threads = 2 * machine.enough_blocks * machine.block_threads
    return max(1, min(threads // max(1, results), math.isqrt(length)))


def _of_product(statement: Statement, specialization: Specialization, machine: GpuMachine, *, tiled: bool) -> int:
    """Blocks for each tile of a product that has few large tiles, and many steps; 1 for others.

    If possible, each has a whole number of iterations of a loop, and of the steps for which operands are in shared
    memory at a time.  Parts of several loops that lie end to end have whole iterations of the outer ones: else operands
    lie in no box.
    """
    if statement.reduction is None or _stays_whole(statement) or not _is_product(statement):
        return 1
    reduced = [i for i in statement.iterators if i not in written_iterators(statement)]
    lengths = [_iterations(statement, specialization, iterator.name) for iterator in reduced]
    own = [length_of(iterator) or 1 for iterator in reduced]
    steps = max((math.prod(own), *lengths))
    tiles, least = None if tiled else _tiles(statement, specialization), _SPLIT_PRODUCT_FROM
    if tiles is None:
        tiles = -(-math.prod(specialization.layouts[statement.target].shape) // _SPLIT_TILE)
        least = _SPLIT_PRODUCT_FROM if 2 * tiles <= machine.enough_blocks else _SPLIT_IN_TWO_FROM
    if steps < least or not 0 < tiles < machine.enough_blocks:
        return 1
    wanted = min(-(-machine.enough_blocks // tiles), steps // _LEAST_SPLIT_STEPS)
    # Best are parts of the outermost loop: operands are copied ahead of the inner ones.
    for length, inner in zip(lengths, own, strict=True):
        near = [n for n in range(wanted // 2 + 1, 2 * wanted) if n <= length]
        whole = [n for n in near if length % n == 0 and (length < steps or steps // n % ENOUGH_STEPS == 0)]
        if length > inner:
            whole = [n for n in whole if length // inner % n == 0]
        if whole:
            return min(whole, key=lambda n: (abs(n - wanted), -n))
    outer = [length // inner for length, inner in zip(lengths, own, strict=True) if length > inner]
    return min(wanted, *lengths) if not outer else max(n for n in range(1, wanted + 1) if outer[0] % n == 0)


def _tiles(statement: Statement, specialization: Specialization) -> int | None:
    """The largest tiles of a product of matrices of four bytes that are not narrow; None for others."""
    reduced = [i for i in statement.iterators if i not in written_iterators(statement)]
    *others, rows, columns = (1, 1, *specialization.layouts[statement.target].shape)
    plain = all(isinstance(s, IteratorReference) for read in reads_of(statement) for s in read.subscripts)
    sizes = {specialization.layouts[read.tensor].type.itemsize for read in reads_of(statement)}
    if len(reduced) > 1 or not plain or sizes != {_BYTES} or 2 * min(rows, columns) < _SIDE:
        return None
    return math.prod(others) * -(-rows // _SIDE) * -(-columns // _SIDE)


def _along(statement: Statement, specialization: Specialization) -> set[str]:
    """The loops of a reduction along which memory is read in each of its iterations."""
    if statement.reduction is None:
        return set()
    layouts, written = specialization.layouts, written_iterators(statement)
    reduced = {i.name for i in statement.iterators if i not in written}
    # What is the same in all iterations of the reduction is read once, wherever it lies; and an operand is small beside
    # another one that goes along the same loops and more.
    uses = [iterators_in(read.subscripts) for read in reads_of(statement)]
    reads = [
        read
        for read, own in zip(reads_of(statement), uses, strict=True)
        if own & reduced and not any(own < other for other in uses)
    ]
    return {
        iterator.name
        for iterator in statement.iterators
        for read in reads
        if stride(read.subscripts, layouts[read.tensor], iterator.name) == 1
    }


def _is_product(statement: Statement) -> bool:
    written = [iterator.name for iterator in written_iterators(statement)]
    reduced = [i.name for i in statement.iterators if i.name not in written and length_of(i) != 1]
    return any(product_loops([read.subscripts for read in reads_of(statement)], written, reduced))


def _iterations(statement: Statement, specialization: Specialization, name: str) -> int:
    """Of the loop, and those around it that go on in memory where it ends; 0 where that is no number."""
    iterator = next(i for i in statement.iterators if i.name == name)
    walk = walk_of(statement, iterator, specialization.layouts)
    return 0 if walk is None else walk.iterations


def _blocks(specialization: Specialization, machine: GpuMachine, name: str, length: int) -> int:
    """Blocks for each result of a reduction of such a length, so that there are enough of them."""
    statement = next(s for s in specialization.program.statements if s.name == name)
    results = math.prod(specialization.layouts[statement.target].shape)
    return max(1, min(2 * machine.enough_blocks // results, length // _FOR_A_BLOCK)) if results else 1
