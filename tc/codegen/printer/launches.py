"""Prints the kernels of a grid: loops over blocks and threads become the launch, their body is the code of a thread."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tc.base.grid import GridKernel
from tc.codegen.printer.routines import SCRATCH, Parameter, braced, finished, mentioned, mentions, routine
from tc.codegen.text.dialect import GridWords
from tc.codegen.text.names import loop_variable
from tc.language.program.program import guarded_reads
from tc.polyhedral.analysis.ranges import Ranges, range_of
from tc.polyhedral.execution.launch_sizes import launch_sizes
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import (
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopKind,
    LoopTree,
)
from tc.polyhedral.transform.share_loops import MOST_BLOCKS

if TYPE_CHECKING:
    from tc.codegen.printer.kernel import KernelPrinter, Scope

# The threads of a block, in the emulator.
TEAM: Final = Parameter("tc_team *", "", "team", "team")
# Dimensions of grids and blocks, as everybody calls them: neighbouring threads differ in x.
_AXES: Final = "xyz"
# Registers of a multiprocessor, and what a thread takes of them beside its partial sums, where these are few.
_REGISTERS: Final = 1 << 16
_OTHER_REGISTERS: Final = 48
_FEW_SUMS: Final = 64
_MOST_RESIDENT: Final = 16
# In the emulator, blocks and threads run in another order at every launch.
_ORDER: Final = (
    "static int64_t launches;",
    "const int64_t order = __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);",
)


@dataclass(frozen=True, slots=True)
class Coordinate:
    """What says which block of a grid or which thread of a block this is, along one loop.

    ``axis``: of the hardware.  Several loops may lie along it: ``below`` is how many iterations those that vary faster
    have together, and ``wraps`` whether there are others that vary more slowly.
    """

    variable: str
    kind: LoopKind
    extent: int
    axis: int
    below: int = 1
    wraps: bool = False

    def value(self, number: str) -> str:
        """Its text in C, where ``number`` is that of the block or the thread along the axis."""
        quotient = number if self.below == 1 else f"{number} / {self.below}"
        return f"{quotient} % {self.extent}" if self.wraps else quotient


@dataclass(frozen=True, slots=True)
class Launch:
    """Blocks of a grid and threads of a block, outermost loop first, and how many of these loops stand around.

    A grid of more dimensions than the hardware has lies along its first one.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    blocks_around: int = 0
    threads_around: int = 0

    def variable(self, kind: LoopKind) -> str:
        """What says which iteration of the next loop of this kind runs."""
        return self._next(kind).variable

    def extent(self, kind: LoopKind) -> int:
        """The iterations that the hardware runs of that loop."""
        return self._next(kind).extent

    def _next(self, kind: LoopKind) -> Coordinate:
        around = self.blocks_around if kind is LoopKind.BLOCK else self.threads_around
        return self._along(kind)[around]

    def inside(self, kind: LoopKind) -> Launch:
        """The launch seen from the body of that loop."""
        if kind is LoopKind.BLOCK:
            return replace(self, blocks_around=self.blocks_around + 1)
        return replace(self, threads_around=self.threads_around + 1)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """All of them, outermost first."""
        return (*self._along(LoopKind.BLOCK), *self._along(LoopKind.THREAD))

    def _along(self, kind: LoopKind) -> tuple[Coordinate, ...]:
        own = self.grid if kind is LoopKind.BLOCK else self.block
        if len(own) <= len(_AXES):
            places = reversed(range(len(own)))
            found = (Coordinate(f"{kind.value}_{_AXES[n]}", kind, e, n) for n, e in zip(places, own, strict=True))
            return tuple(found)
        return tuple(
            Coordinate(f"{kind.value}_{len(own) - 1 - n}", kind, extent, 0, math.prod(own[n + 1 :]), wraps=n > 0)
            for n, extent in enumerate(own)
        )

    def sizes(self, kind: LoopKind) -> tuple[int, ...]:
        """The extents of the hardware along x, y and z."""
        own = self.grid if kind is LoopKind.BLOCK else self.block
        if len(own) > len(_AXES):
            own = (math.prod(own),)
            assert own[0] <= MOST_BLOCKS[0], "the loops are shared by as many blocks as a grid can have"
        return (*reversed(own), *(1 for _ in range(len(_AXES) - len(own))))


def launch(kernel: KernelPrinter, tree: LoopTree, scope: Scope) -> list[str]:
    """Runs all threads of all blocks, each of them by one call of a routine of its own.

    What has no loops over blocks and threads runs on a single one.
    """
    sizes = launch_sizes(tree, scope.ranges)
    found = Launch(sizes.grid, sizes.block)
    kernel.shared_bytes = kernel.private_bytes = 0
    kernel.partial_sums = 0
    kernel.shared_places.clear()
    body = finished(kernel.tree(tree, replace(scope, launch=found)), kernel.dialect)
    around = tuple(Parameter(kernel.index_type, "", loop_variable(depth), "") for depth in range(scope.depth))
    exchanged = _exchanged(kernel, tree)
    captured = tuple(
        replace(p, qualifier="") if p.name in exchanged else p
        for p in mentioned((*kernel.parameters, *around), body)
        if p != SCRATCH
    )
    if kernel.dialect.grids is not None:
        return _grid_kernel(kernel, kernel.dialect.grids, found, captured, body)
    if mentions(body, TEAM.name):
        return _launch_team(kernel, found, captured, body)
    numbers = tuple(Parameter(kernel.index_type, "", c.variable, c.variable) for c in found.coordinates)
    label = f"tc_kernel_{len(kernel.regions)}"
    kernel.regions.append(
        routine(label, [p.declaration for p in (*captured, *mentioned(numbers, body))], body, kernel.dialect)
    )
    arguments = ", ".join(p.name for p in (*captured, *mentioned(numbers, body)))
    lines = [f"{label}({arguments});"]
    for c in reversed(found.coordinates):
        number = f"const {kernel.index_type} {c.variable} = tc_in_order({c.variable}_turn, {c.extent}, order);"
        lines = braced(_counting(f"{c.variable}_turn", c.extent), [number, *lines])
    return braced("", [*_ORDER, *lines]) if found.coordinates else lines


def _exchanged(kernel: KernelPrinter, tree: LoopTree) -> frozenset[str]:
    """The pointers to tensors through which the threads of a block may hand each other something.

    They are not ``restrict``, which promises that no other pointer writes there: compilers could keep behind a barrier
    what they read before it.
    """
    names = {instance.statement for instance, _ in loop_paths(tree, ())}
    if names.isdisjoint(kernel.barriers):
        return frozenset()
    bodies = [body for name, body in kernel.bodies.items() if name in names]
    read = {body.target for body in bodies if body.reduction is not None}
    for body in bodies:
        read |= {own.read.tensor for value in (body.value, *body.subscripts) for own in guarded_reads(value)}
    written = {body.target for body in bodies}
    return frozenset(kernel.pointer(tensor) for tensor in read & written if not kernel.is_promoted(tensor))


def _counting(variable: str, extent: int) -> str:
    return f"for (int64_t {variable} = 0; {variable} < {extent}; {variable} += 1)"


def _grid_kernel(
    kernel: KernelPrinter, words: GridWords, launched: Launch, captured: tuple[Parameter, ...], body: list[str]
) -> list[str]:
    """The kernel as a function of its own; the run time launches it."""
    name = f"tc_kernel_{len(kernel.regions)}"
    sizes = (launched.sizes(LoopKind.BLOCK), launched.sizes(LoopKind.THREAD))
    grid = GridKernel(name, *sizes, kernel.shared_bytes, tuple(p.given for p in captured if p.given is not None))
    kernel.grids.append(grid)
    moved = [f"{p.name} += {p.before};" for p in captured if words.from_lowest and p.before]
    numbers = []
    for c in launched.coordinates:
        word = words.block if c.kind is LoopKind.BLOCK else words.thread
        if mentions(body, c.variable):
            value = c.value(word.format(axis=_AXES[c.axis], number=c.axis))
            numbers.append(f"const {kernel.index_type} {c.variable} = {value};")
    memory = [_shared(words, grid)] if grid.shared_bytes else []
    x, y, z = grid.block
    resident = max(kernel.resident, _resident(kernel.partial_sums, grid.threads))
    header = words.kernel.format(threads=grid.threads, x=x, y=y, z=z, resident=resident)
    declared = [p.declaration for p in captured]
    lines = [*moved, *numbers, *memory, *body]
    kernel.regions.append(routine(name, declared, lines, replace(kernel.dialect, routine=header)))
    return []


def _resident(partial_sums: int, threads: int) -> int:
    """Blocks that find room on a multiprocessor where threads have partial sums, whose totals are in memory.

    Left alone, CUDA's compiler takes a few registers more for what seldom runs, and fewer blocks find room.
    """
    if not 0 < partial_sums <= _FEW_SUMS:
        return 1
    return min(max(1, _REGISTERS // (threads * (partial_sums + _OTHER_REGISTERS))), _MOST_RESIDENT)


def _shared(words: GridWords, grid: GridKernel) -> str:
    """The declaration of the memory that the threads of a block share."""
    if words.dynamic_shared is not None and grid.dynamic_bytes:
        return words.dynamic_shared
    return words.shared.format(bytes=grid.shared_bytes)


def _launch_team(
    kernel: KernelPrinter, launched: Launch, captured: tuple[Parameter, ...], body: list[str]
) -> list[str]:
    """Runs the threads of every block together, so that they can wait for each other."""
    label, index = f"tc_kernel_{len(kernel.regions)}", kernel.index_type
    places = {c.variable: c.value(f"{TEAM.name}->{c.kind.value}[{c.axis}]") for c in launched.coordinates}
    numbers = tuple(Parameter(index, "", name, value) for name, value in places.items())
    own = mentioned(numbers, body)
    declared = [p.declaration for p in (*captured, TEAM, *own)]
    passed = [*(f"arguments->{p.name}" for p in captured), TEAM.name, *(p.argument for p in own)]
    entry = [f"const struct {label}_arguments *arguments = {TEAM.name}->arguments;", f"{label}({', '.join(passed)});"]
    kernel.regions.append(
        [
            *braced(f"struct {label}_arguments", (f"{p.field};" for p in captured))[:-1],
            "};",
            "",
            *routine(label, declared, body, kernel.dialect),
            "",
            *braced(f"static void {label}_thread({TEAM.field})", entry),
        ]
    )
    grid, block = (", ".join(map(str, launched.sizes(kind))) for kind in (LoopKind.BLOCK, LoopKind.THREAD))
    sizes = f"{kernel.shared_bytes}, {kernel.private_bytes}"
    return braced(
        "",
        [
            f"const struct {label}_arguments arguments = {{{', '.join(p.name for p in captured)}}};",
            f"const int64_t grid[3] = {{{grid}}}, block[3] = {{{block}}};",
            *_ORDER,
            f"const int diverged = tc_run_team(&arguments, {label}_thread, grid, block, {sizes}, order);",
            "if (diverged) __atomic_store_n(fault, diverged, __ATOMIC_RELAXED);",
        ],
    )


def mapped_loop(kernel: KernelPrinter, loop: Loop, scope: Scope) -> list[str]:
    """The body for the iteration that this block or thread is, if the loop has it."""
    assert scope.launch is not None
    variable, extent = scope.launch.variable(loop.kind), scope.launch.extent(loop.kind)
    inner = replace(
        scope.inside(loop),
        variables={**scope.variables, loop.iterator: variable},
        depth=scope.depth,
        launch=scope.launch.inside(loop.kind),
    )
    lines = kernel.tree(loop.body, inner)
    for condition in reversed(list(_conditions(loop, extent, scope.ranges))):
        lines = braced(f"if ({kernel.index(condition, inner)})", lines)
    return lines


def _conditions(loop: Loop, extent: int, ranges: Ranges) -> Iterator[IndexExpression]:
    """What distinguishes the iterations of the loop from all that the hardware runs."""
    iterator = IndexVariable(loop.iterator)
    if range_of(loop.lower, ranges).most > 0:
        yield IndexOperation(IndexOperator.GREATER_EQUAL, (iterator, loop.lower))
    if range_of(loop.upper, ranges).least < extent - 1:
        yield IndexOperation(IndexOperator.LESS_EQUAL, (iterator, loop.upper))
    if loop.step != 1:
        distance = IndexOperation(IndexOperator.SUBTRACT, (iterator, loop.lower))
        rest = IndexOperation(IndexOperator.ZERO_REMAINDER, (distance, IndexLiteral(loop.step)))
        yield IndexOperation(IndexOperator.EQUAL, (rest, IndexLiteral(0)))
