"""Default tile sizes for thread blocks and threads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.language.program.affine_form import coefficient
from tc.language.program.program import Expression, Read, iterators_in
from tc.polyhedral.analysis.extents import extent_of, sides_of, volume
from tc.polyhedral.analysis.reads import data_ranges, value_reads
from tc.polyhedral.analysis.reuse import product_loops
from tc.polyhedral.analysis.strides import is_turned, iterator_of, stride
from tc.polyhedral.gpu.mapping.image_points import PAIR, VECTOR, image_loops, in_pairs, in_rows
from tc.polyhedral.gpu.mapping.runs import run_of
from tc.polyhedral.gpu.mapping.short_chains import is_chain
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import Band, Leaf, Member, Node, Sequence, statement_names
from tc.polyhedral.transform.share_loops import inner_loops
from tc.polyhedral.transform.tile import WHOLE, ChooseCuts, Cut, is_counted
from tc.targets.machine import GpuMachine

# Points of a block along x and y where there are two loops to share, one for every thread: a warp reads neighbours.
TILES: Final = ((32, 8), (32, 4), (32, 2))
# Where what is read lies along y: whole lines of the cache along both.
TURNED_TILE: Final = (32, 32)
# Tiles of products, x first: the larger, the more often what is in shared memory is read, and the fewer blocks there
# are.  A thread has several points of the larger ones.
PRODUCT_TILES: Final = ((128, 128), (128, 64), (64, 64), (64, 32), (32, 32), (32, 16), (16, 16))
# Threads along both sides of a large tile, how many points make it one, and how many of them a thread has at least.
SIDE: Final = 16
MANY_POINTS: Final = 1024
POINTS: Final = 8
# Steps of a product whose operands lie in shared memory at a time: more than enough where they are small, so that
# threads wait for each other less often.
STEPS: Final = (64, 32, 16, 8, 4, 2, 1)
ENOUGH_STEPS: Final = 16
# Blocks for each that is enough where threads have runs of points: as many as a multiprocessor has room for; fewer
# threads hide less of what memory takes.
FULL: Final = 8
ITEM: Final = 4
# The least side of a tile of which threads have pairs of points.
PAIRS: Final = 16
# Of so many parts of a loop, a shorter one at its end is of no importance.
MANY_PARTS: Final = 8
# Products of fewer steps are none that is worth it.
LEAST_STEPS: Final = 8


def default_tiles(scop: Scop, machine: GpuMachine, block: tuple[int, ...] = ()) -> ChooseCuts:
    """Tiles of one point per thread, but for products and what is turned, of which a thread has several.

    A block takes few iterations of the outermost loops where its threads share loops inside of them.  ``block``:
    threads along every dimension, x first, if they were asked for; there are points for all of them.
    """

    def choose(band: Band, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> tuple[Cut, ...]:
        # Loops over the partial results of blocks count, too, where no tile sizes were given.
        counted = [member for member in band.members if is_counted(replace(member, split=False))]
        if not counted or (depth > 0 and len(points) < 2):
            return (WHOLE,) * len(band.members)
        product = _product(scop, machine, domain)
        chosen: dict[Member, int] = {}
        shares: dict[Member, int] = {}
        runs: dict[Member, int] = {}
        blocked: frozenset[Member] = frozenset()
        if depth == 0:
            shared = [member for member in counted if member.coincident]
            chosen = dict.fromkeys(shared, 1)
            if not inner_loops(band.child, domain):
                tiled = None if product is None else product.tile(shared)
                chosen |= _plain_tile(shared, scop, machine, domain) if tiled is None else tiled
                product = None if tiled is None else product
                shares = _shares(tiled or {}) or (product.in_pairs(tiled or {}, shared) if product else {})
                if product is not None and not block:
                    shares |= product.in_images(tiled or {}, shares)
                if tiled is None and not block:
                    runs = _runs(band, shared, chosen, scop, machine, domain)
                points_of = {member: chosen[member] // count for member, count in shares.items()}
                blocked = frozenset() if product is None else product.blocked(shared, points_of)
            else:
                product = None
                one = block or is_chain(band, domain, scop)
                chosen |= {} if one else _several_rows(band, shared, domain, machine)
            inside = 1 if inner_loops(band.child, domain) else 0  # x is of the loops inside
            for member, threads in zip(reversed(shared), block[inside:], strict=False):
                chosen[member] = max(chosen[member], threads)
        if product is not None:
            tile = {**{point: product.extent(point) for point in points}, **chosen}
            chosen |= product.steps([member for member in counted if not member.coincident], tile)
        return tuple(
            _in_runs(chosen[member], runs[member])
            if member in runs
            else Cut(chosen[member], threads=shares.get(member, 0), blocked=member in blocked)
            if member in chosen
            else WHOLE
            for member in band.members
        )

    return choose


def _plain_tile(shared: Items[Member], scop: Scop, machine: GpuMachine, domain: isl.UnionSet) -> dict[Member, int]:
    """A point for every thread of the largest block of which there are enough; squares where rows are turned."""
    extents = [extent_of(member.function, domain) for member in shared]
    if len(shared) < 2:
        threads = machine.block_threads
        sizes = _enough(((threads,), (threads // 2,), (threads // 4,)), extents, machine)
    else:
        layouts = layouts_of(scop)
        bodies = [scop.statement(name).body for name in statement_names(domain)]
        reads = ((read, iterator_of(shared[-1].function, body)) for body in bodies for read in value_reads(body))
        turned = any(is_turned(read, layouts[read.tensor], iterator) for read, iterator in reads)
        sizes = TURNED_TILE if turned else _filled(_enough(TILES, extents, machine), extents, machine)
    return dict(zip(reversed(shared), sizes, strict=False))


def _runs(
    band: Band,
    shared: Items[Member],
    tile: Mapping[Member, int],
    scop: Scop,
    machine: GpuMachine,
    domain: isl.UnionSet,
) -> dict[Member, int]:
    """The runs of each thread along the innermost loop, where there are enough blocks of them."""
    if not shared or not _is_nest(band.child) or shared[-1] is not band.members[-1]:
        return {}
    extents = [extent_of(member.function, domain) for member in shared]
    blocks = math.prod(-(-extent // tile[member]) for member, extent in zip(shared, extents, strict=True))
    most = min(blocks // (FULL * machine.enough_blocks), extents[-1] // tile[shared[-1]])
    run = min(most, run_of(shared[-1], band.members, scop, domain)) if most > 1 else 1
    return {shared[-1]: 1 << run.bit_length() - 1} if run > 1 else {}


def _is_nest(node: Node) -> bool:
    """Whether there is no loop below."""
    return isinstance(node, Leaf) or (
        isinstance(node, Sequence) and all(isinstance(branch.child, Leaf) for branch in node.filters)
    )


def _in_runs(threads: int, run: int) -> Cut:
    """So many threads, each of which has a run of points."""
    return Cut(threads * run, points=LoopKind.VECTOR, threads=threads, run=run)


def _filled(tile: tuple[int, ...], extents: Items[int], machine: GpuMachine) -> tuple[int, ...]:
    """The tile, x first, with iterations of the loops around it where those it has are short."""
    own = [min(size, extent) for size, extent in zip(tile, reversed(extents), strict=False)]
    blocks = math.prod(extents[: -len(tile)])
    if any(size < extent for size, extent in zip(own, reversed(extents), strict=False)):
        return tile
    for extent in reversed(extents[: -len(tile)]):
        more = min(extent, machine.block_threads // math.prod(own), blocks // machine.enough_blocks)
        if more < 2:
            break
        own.append(more)
        blocks = blocks // extent * -(-extent // more)
        if more < extent:
            break
    return tuple(own) if len(own) > len(tile) else tile


def _several_rows(band: Band, shared: Items[Member], domain: isl.UnionSet, machine: GpuMachine) -> dict[Member, int]:
    """As many iterations of the innermost loop around rows as fill a block where rows are short."""
    if not shared:
        return {}
    rows = inner_loops(band.child, domain)
    longest = max(row.extent for row in rows.values())
    threads = -(-longest // machine.warp) * machine.warp
    *others, last = (extent_of(member.function, domain) for member in shared)
    blocks = math.prod(others) * last
    return {shared[-1]: max(1, min(machine.block_threads // threads, blocks // machine.enough_blocks, last))}


def _enough(tiles: Items[tuple[int, ...]], extents: Items[int], machine: GpuMachine) -> tuple[int, ...]:
    """The first of the tiles, x first, of which there are enough in loops of these extents, else the last one."""
    for tile in tiles:
        whole = (*(1 for _ in extents), *reversed(tile))[len(tile) :]
        count = math.prod(-(-extent // size) for extent, size in zip(extents, whole, strict=True))
        if count >= machine.enough_blocks:
            return tile
    return tiles[-1]


@frozen
class _Product:
    """The heaviest reduction below a band, some of whose operands are the same along one loop or another."""

    scop: Scop
    machine: GpuMachine
    statement: ScopStatement

    def tile(self, shared: Items[Member]) -> dict[Member, int] | None:
        """The tile of two of the loops: the largest that leaves enough blocks; None where it is no product of two."""
        body = self.statement.body
        members = {name: m for m in shared if (name := iterator_of(m.function, body)) is not None}
        extents = {name: self.extent(member) for name, member in members.items()}
        long = [name for name, extent in extents.items() if extent > 1]
        sides = zip(body.iterators, sides_of(self.statement.domain), strict=True)
        reduced = {name: side for name, side in sides if name not in members and side > 1}
        pairs = list(product_loops([read.subscripts for read in value_reads(body)], long, reduced))
        if not pairs:
            return None
        layout = layouts_of(self.scop)[body.target]
        along = {name for name in long if stride(body.subscripts, layout, name) == 1}
        if all(extents[name] < self.runs(reduced) for name in along):
            along = set()
        pair = max(pairs, key=lambda pair: (bool(along & set(pair)), extents[pair[0]] * extents[pair[1]]))
        # Members are in the order of the loops: the innermost is x.
        y, x = (name for name in members if name in pair)
        others = math.prod(extents[name] for name in extents if name not in pair)
        columns, rows = _enough(PRODUCT_TILES, (others, extents[y], extents[x]), self.machine)
        most = {name: self.side(name, members.keys(), extents[name]) for name in (x, y)}
        sizes = {x: min(columns, most[x]), y: min(rows, most[y])}
        return {members[name]: size for name, size in self.extended(sizes, extents).items()}

    def side(self, name: str, points: Set[str], extent: int) -> int:
        """Of a tile, at most: threads have as many points each, be they there or not, unless there are few of them.

        Operands that move along other loops, too, have no places for what is not there.
        """
        uses = (iterators_in((s,)) for read in value_reads(self.statement.body) for s in read.subscripts)
        alone = all(own <= points for own in uses if name in own)
        return -(-extent // SIDE) * SIDE if alone and extent > 2 * SIDE else extent

    def blocked(self, shared: Items[Member], points: Mapping[Member, int]) -> frozenset[Member]:
        """The loops along which a thread that has neighbours reads vectors, or some elements again.

        What it stores then is apart from what other threads do at the same time: where the result is contiguous, it
        has to store vectors, too.  ``points``: of a thread, where that is known.
        """
        body, layouts = self.statement.body, layouts_of(self.scop)
        members = {name: m for m in shared if (name := iterator_of(m.function, body)) is not None}
        images = image_loops(body, members.keys())
        found = set(images)
        for read in value_reads(body):
            along = {name for name in members if stride(read.subscripts, layouts[read.tensor], name) == 1}
            found |= along or self.by_points(read, members)
        target = layouts[body.target]
        steps = target.steps[:-1]
        vectors = target.type.itemsize == ITEM and all(isinstance(s, int) and s % VECTOR == 0 for s in steps)

        def stores(name: str, own: int) -> bool:
            """Whether it does, or has pairs that share what is read of an image."""
            return (vectors and own % VECTOR == 0) or (name in images and own == PAIR)

        return frozenset(
            member
            for name, member in members.items()
            if name in found
            if stride(body.subscripts, target, name) != 1 or stores(name, points.get(member, 1))
        )

    def in_pairs(self, tile: Mapping[Member, int], shared: Items[Member]) -> dict[Member, int]:
        """The threads along both sides of a small tile of which there are many: each has two points along either."""
        sides = {member: size for member, size in tile.items() if size > 1}
        blocks = math.prod(-(-self.extent(member) // tile.get(member, 1)) for member in shared)
        small = len(sides) == 2 and all(PAIRS <= size <= 2 * SIDE for size in sides.values())
        many = blocks >= 2 * self.machine.enough_blocks
        return {member: -(-size // 2) for member, size in sides.items()} if small and many else {}

    def in_images(self, tile: Mapping[Member, int], shares: Mapping[Member, int]) -> dict[Member, int]:
        """The threads along some loops of a convolution, whose taps share elements."""
        members = {name: m for m in tile if (name := iterator_of(m.function, self.statement.body)) is not None}
        sizes = {name: tile[member] for name, member in members.items()}
        whole = {name: self.extent(member) for name, member in members.items()}
        threads = in_rows(self.statement.body, sizes, whole, self.machine)
        threads = threads or ({} if shares else in_pairs(self.statement.body, sizes, self.machine))
        return {members[name]: count for name, count in threads.items()}

    def by_points(self, read: Read, members: Mapping[str, Member]) -> set[str]:
        """The loop that is innermost in shared memory where an operand lies there in another order than in memory."""
        steps = iterators_in(read.subscripts[-1:]) - members.keys()
        sides = dict(zip(self.statement.body.iterators, sides_of(self.statement.domain), strict=True))
        if not read.subscripts or all(sides[name] % 2 == 0 or sides[name] > STEPS[0] for name in steps):
            return set()
        uses = [iterators_in((subscript,)) & members.keys() for subscript in read.subscripts]
        return set(next((own for own in reversed(uses) if own), ()))

    def runs(self, reduced: Mapping[str, int]) -> int:
        """Neighbouring elements of each operand that the loops which reduce read at least, one after the other.

        ``reduced``: how many iterations each has.
        """
        layouts = layouts_of(self.scop)
        return min(
            max((n for i, n in reduced.items() if stride(read.subscripts, layouts[read.tensor], i) == 1), default=1)
            for read in value_reads(self.statement.body)
        )

    def extended(self, sizes: Mapping[str, int], extents: dict[str, int]) -> dict[str, int]:
        """The tile with other loops along one operand only, innermost first, where those of the pair are short."""
        operands = [iterators_in(read.subscripts) for read in value_reads(self.statement.body)]
        uses = {name: tuple(name in operand for operand in operands) for name in extents}
        tile = dict(sizes)
        for name in reversed(extents):
            if name in sizes or uses[name] not in [uses[own] for own in sizes]:
                continue
            blocks = math.prod(-(-extent // tile.get(own, 1)) for own, extent in extents.items() if own != name)
            points = extents[name] * math.prod(tile.values())
            parts = max(-(-points // self.machine.tile_points), -(-2 * self.machine.enough_blocks // blocks))
            if parts < extents[name]:
                tile[name] = -(-extents[name] // parts)
        return tile

    def steps(self, carried: Items[Member], tile: Mapping[Member, int]) -> dict[Member, int]:
        """How much of the loops that reduce is done with what lies in shared memory: all of the inner ones first.

        ``tile``: how far the other loops of a tile go.
        """
        for most in STEPS:
            sizes: dict[Member, int] = {}
            done = 1
            for member in reversed(carried):
                sizes[member] = _part(self.extent(member), max(1, round(most / done)))
                done *= sizes[member]
            room = self.machine.few_operand_bytes if most > ENOUGH_STEPS else self.machine.operand_bytes
            if self.operand_bytes({**tile, **sizes}) <= room:
                break
        return sizes

    def operand_bytes(self, tile: Mapping[Member, int]) -> int:
        """What the operands of a tile take, if none of their subscripts depends on data."""
        body, layouts = self.statement.body, layouts_of(self.scop)
        # The points of a loop may be walked in groups, by two members.
        sizes: dict[str | None, int] = {}
        for member, size in tile.items():
            iterator = iterator_of(member.function, body)
            sizes[iterator] = sizes.get(iterator, 1) * size
        return sum(
            layouts[read.tensor].type.itemsize * math.prod(_reach(subscript, sizes) for subscript in read.subscripts)
            for read in value_reads(body)
        )

    def extent(self, member: Member) -> int:
        return extent_of(member.function, isl.UnionSet.from_set(self.statement.domain))


def _shares(tile: Mapping[Member, int]) -> dict[Member, int]:
    """The threads that share each side, x first, of a large tile, so that each has several points along both.

    A warp then reads less of either operand: for four steps of the reduction, 16 by 2 threads with 8 by 8 points each
    read 24 times 128 bytes, 32 by 1 threads with 4 by 16 points 32 times.
    """
    sides = [(member, size) for member, size in tile.items() if size > 1]
    if len(sides) != 2:
        return {}
    (x, columns), (y, rows) = sides
    if columns % SIDE or rows % SIDE or columns * rows < MANY_POINTS:
        return {}
    return {x: SIDE, y: min(SIDE, columns * rows // POINTS // SIDE)}


def _reach(subscript: Expression, sizes: Mapping[str | None, int]) -> int:
    """From the first to the last value of a subscript in a tile."""
    steps = ((coefficient(subscript, name) or 0, sizes.get(name, 1)) for name in iterators_in((subscript,)))
    return 1 + sum(abs(step) * (size - 1) for step, size in steps)


def _part(extent: int, most: int) -> int:
    """So many iterations of a loop, or a few less where the loop then has whole parts only; best, in whole vectors.

    Of many parts, one may be shorter.
    """
    if extent <= 2 * most:
        return extent
    fitting = [part for part in range(most, most // 2, -1) if extent % part == 0]
    vectors = [part for part in fitting if part % VECTOR == 0]
    return next(iter(vectors), most if extent >= MANY_PARTS * most else next(iter(fitting), most))


def is_tiled_product(scop: Scop, machine: GpuMachine, band: Band, domain: isl.UnionSet) -> bool:
    """Whether the heaviest statement is a product of two loops of a band, whose tiles share operands."""
    product = None if inner_loops(band.child, domain) else _product(scop, machine, domain)
    return product is not None and product.tile([m for m in band.members if m.coincident]) is not None


def _product(scop: Scop, machine: GpuMachine, domain: isl.UnionSet) -> _Product | None:
    """That of the heaviest statement, if it reduces often enough, and not over a range of each point's own."""
    names = statement_names(domain)
    heaviest = max(names, key=lambda name: volume(isl.UnionSet.from_set(scop.statement(name).domain)))
    statement = scop.statement(heaviest)
    if not statement.accumulates or data_ranges(statement.body):
        return None
    kept = math.prod(layouts_of(scop)[statement.body.target].shape)
    if volume(isl.UnionSet.from_set(statement.domain)) < LEAST_STEPS * kept:
        return None
    return _Product(scop, machine, statement)
