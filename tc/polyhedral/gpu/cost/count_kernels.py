"""Counts what the kernels of a program ask for: every launch, the kinds of its blocks, and the memory that it needs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, TypeVar

import numpy as np

from tc.base.frozen import frozen
from tc.base.grid import WARP
from tc.codegen.index.placement import shared_places
from tc.language.isl.affine import parameter_name
from tc.language.program.program import Read, reads_in, walk
from tc.polyhedral.analysis.ranges import Ranges, size_ranges
from tc.polyhedral.execution.launch_sizes import LaunchSizes, launch_sizes
from tc.polyhedral.execution.launches import launched_nests
from tc.polyhedral.execution.streamed import stream_in
from tc.polyhedral.execution.thread_registers import ThreadRegisters
from tc.polyhedral.generate.thread_orders import thread_order
from tc.polyhedral.gpu.cost.changes import changes
from tc.polyhedral.gpu.cost.count_block import BlockCounter
from tc.polyhedral.gpu.cost.lane_values import Array
from tc.polyhedral.gpu.cost.sample_loops import alike
from tc.polyhedral.gpu.cost.scope import Scope
from tc.polyhedral.gpu.cost.tally import Tally, are_like, demand_of, tally
from tc.polyhedral.gpu.cost.touch import Touching
from tc.polyhedral.gpu.cost.unrolling import depth_of
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    GroupMma,
    Guard,
    Leaf,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    Scheduled,
    Sharing,
    StatementBody,
    leaves,
)
from tc.polyhedral.ir.streams import FILLING_WARPS
from tc.prediction.counts import BlockKind, KernelCount

# Blocks that differ by less are of one kind.
_ALIKE: Final = 0.02
# What a thread does before its first statement: it reads its coordinates and arguments, and makes addresses.
_BEGIN: Final = tally(alu=20, control=4)


Count: TypeAlias = Callable[[tuple[int, ...]], Tally]
Sign: TypeAlias = Callable[[tuple[int, ...]], object]
Kinds: TypeAlias = tuple[tuple[Tally, int], ...]
Made = TypeVar("Made")


def count_kernels(program: LoopProgram) -> tuple[KernelCount, ...]:
    """The kernels in the order in which they run; open sizes have their greatest values."""
    ranges = size_ranges(program.sizes)
    written: set[str] = set()
    found = []
    for _, nest, around in launched_nests(program.blocked or program.root, ranges):
        counter = _NestCounter(program, nest, around, launch_sizes(nest, around), frozenset(written))
        found.append(counter.count())
        written |= counter.writes
    return tuple(found)


@frozen
class _NestCounter:
    program: LoopProgram
    nest: LoopTree
    around: Ranges
    sizes: LaunchSizes
    before: frozenset[str]

    def count(self) -> KernelCount:
        grid = self.sizes.grid or (1,)
        buffers = (*self.program.buffers, *self.program.temporaries)
        spans = {buffer.name: buffer.layout.span * buffer.layout.type.itemsize for buffer in buffers}
        reads, chosen = self.reads
        opened = size_ranges(self.program.sizes)
        steps = (own for name, own in self.around.items() if name not in opened)
        fillers = FILLING_WARPS * WARP if stream_in(self.nest) is not None else 0
        return KernelCount(
            grid=grid,
            threads=math.prod(self.sizes.block) + fillers,
            launches=math.prod(int(own.most - own.least) + 1 for own in steps),
            kinds=self._kinds(),
            read=sum(spans[name] for name in reads - chosen),
            written=sum(spans[name] for name in self.writes),
            chosen=sum(spans[name] for name in chosen),
            passed=sum(spans[name] for name in (reads - chosen) & self.before),
            shared=shared_places(self.nest)[1],
            kept=_kept(self.nest),
            ahead=any(isinstance(leaf, GroupMma) for leaf in leaves(self.nest)),
            fillers=fillers,
        )

    @property
    def writes(self) -> frozenset[str]:
        """The tensors in global memory that it writes."""
        names = {leaf.statement for leaf in leaves(self.nest) if isinstance(leaf, Scheduled)}
        targets = {body.target for body in self.program.bodies if body.name in names}
        return frozenset(targets & self._global)

    @property
    def reads(self) -> tuple[frozenset[str], frozenset[str]]:
        """Those that it reads, and those of them of which data choose elements."""
        names = {leaf.statement for leaf in leaves(self.nest) if isinstance(leaf, Scheduled)}
        read: set[str] = set()
        chosen: set[str] = set()
        for body in self.program.bodies:
            if body.name in names:
                for value in (body.value, *body.subscripts):
                    for own in reads_in(value):
                        read.add(own.tensor)
                        if any(isinstance(part, Read) for s in own.subscripts for part in walk(s)):
                            chosen.add(own.tensor)
                if body.reduction is not None:
                    read.add(body.target)
        return frozenset(read & self._global), frozenset(chosen & self._global)

    @property
    def _global(self) -> set[str]:
        return {buffer.name for buffer in (*self.program.buffers, *self.program.temporaries)}

    def _kinds(self) -> tuple[BlockKind, ...]:
        program = self.program
        coordinates = self._coordinates()
        layouts = {b.name: b.layout for b in (*program.buffers, *program.temporaries, *program.promoted)}
        written = self.writes | {buffer.name for buffer in program.promoted}
        touching = Touching(layouts, {buffer.name: buffer.sharing for buffer in program.promoted}, written)
        bodies = self.bodies
        scope = Scope(self._outer_values(), np.ones(len(coordinates[0]), dtype=bool))
        begin = _BEGIN * scope.warps
        grid = self.sizes.grid or (1,)
        nest, loops = _inside_blocks(self.nest)
        registers = ThreadRegisters(len(coordinates[0]), math.prod(grid), program.multiprocessors)
        decided = changes(nest, frozenset(loop.iterator for loop in loops))
        along = tuple(bool(changes(nest, frozenset({loop.iterator})).decisions) for loop in loops)

        def count(block: tuple[int, ...]) -> Tally:
            counter = BlockCounter(bodies, layouts, touching, block, coordinates, registers)
            return begin + counter.demand(self.nest, scope)

        def signature(block: tuple[int, ...]) -> object:
            own = {loop.iterator: np.array([place]) for loop, place in zip(loops, block, strict=False)}
            return decided.signature({**scope.values, **own})

        found: list[tuple[Tally, int]] = []
        inside = max(1, depth_of(nest) - 2)
        for own, times in _blocks(grid, (*along, *(True for _ in grid[len(along) :])), inside, count, signature):
            like = next((n for n, (other, _) in enumerate(found) if are_like(own, other, _ALIKE)), None)
            if like is None:
                found.append((own, times))
            else:
                found[like] = found[like][0], found[like][1] + times
        return tuple(BlockKind(times, demand_of(own)) for own, times in sorted(found, key=lambda kind: -kind[1]))

    def _coordinates(self) -> tuple[Array, ...]:
        """Along the loops over threads, outermost first, of the threads in the order in which warps take them."""
        threads = self.sizes.block or (1,)
        order = thread_order(self.nest, self.sizes.block, self.bodies, self.program.promoted)
        if order is None:
            return tuple(np.indices(threads).reshape(len(threads), -1))
        every = [order.iterations(number) for number in range(math.prod(threads))]
        return tuple(np.array(along) for along in zip(*every, strict=True))

    @property
    def bodies(self) -> dict[str, StatementBody]:
        """By name."""
        return {body.name: body for body in self.program.bodies}

    def _outer_values(self) -> dict[str, Array]:
        """Open sizes have their greatest values, and steps around launches those in the middle."""
        opened = {parameter_name(size) for size, _ in self.program.sizes}
        middle = {
            name: (int(own.least) + int(own.most)) // 2 for name, own in self.around.items() if name not in opened
        }
        most = {name: int(own.most) for name, own in self.around.items() if name in opened}
        return {name: np.array([value]) for name, value in (middle | most).items()}


def _inside_blocks(tree: LoopTree) -> tuple[LoopTree, tuple[Loop, ...]]:
    """What is inside of the loops over blocks that stand one in the other, and these loops."""
    loops: list[Loop] = []
    while isinstance(tree, Loop) and tree.kind is LoopKind.BLOCK:
        loops.append(tree)
        tree = tree.body
    return tree, tuple(loops)


def _blocks(grid: tuple[int, ...], differ: tuple[bool, ...], inside: int, count: Count, signature: Sign) -> Kinds:
    """What the blocks of a grid ask for, and how many blocks ask for each.

    ``differ``: along which dimensions they do.  ``inside``: how many loops stand one in the other in a block.
    """
    if not grid:
        return ((count(()), 1),)
    # Rows of blocks are alike where their ends and the middle are.
    ends = [{0, length // 2, length - 1} if own else {0} for length, own in zip(grid[1:], differ[1:], strict=True)]
    corners = tuple(itertools.product(*map(sorted, ends)))

    def sign(number: int) -> object:
        return tuple(signature((number, *corner)) for corner in corners) if differ[0] else ()

    found: list[tuple[Tally, int]] = []
    known: dict[object, Kinds] = {}
    for number, times in alike(grid[0], sign, inside):
        key = sign(number)
        if key not in known:
            behind = partial(_behind, count, number), partial(_behind, signature, number)
            known[key] = _blocks(grid[1:], differ[1:], inside, *behind)
        found += [(own, times * each) for own, each in known[key]]
    return tuple(found)


def _behind(function: Callable[[tuple[int, ...]], Made], number: int, rest: tuple[int, ...]) -> Made:
    return function((number, *rest))


def _kept(tree: LoopTree) -> int:
    """Words in the registers of a thread that arrays take, where most of these are there at a time."""
    match tree:
        case Allocation(buffer, body):
            own = (
                buffer.layout.span * max(1, buffer.layout.type.itemsize // 4) if buffer.sharing is Sharing.THREAD else 0
            )
            return own + _kept(body)
        case Block(children):
            return max(map(_kept, children), default=0)
        case Guard(_, then, otherwise):
            return max(_kept(then), 0 if otherwise is None else _kept(otherwise))
        case Loop(body=body):
            return _kept(body)
        case Leaf():
            return 0
        case _:
            raise AssertionError(tree)
