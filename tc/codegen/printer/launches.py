"""Prints the kernels of a grid: loops over blocks and threads become the launch, their body is the code of a thread."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field, replace
from functools import partial, reduce
from typing import Final

from tc.base.frozen import frozen
from tc.base.grid import STATIC_SHARED, Argument, GridKernel, Place, TensorMap
from tc.base.types import ScalarType
from tc.codegen.index.block_orders import block_order
from tc.codegen.index.launch import AXES, Launch, launch_of
from tc.codegen.index.launch_offsets import LaunchOffsets
from tc.codegen.index.placement import ALIGNMENT
from tc.codegen.printer.context import Context, Scope, TreePrinter
from tc.codegen.printer.printed import ALIGNED, ELSE, Facts, Printed, line, together
from tc.codegen.printer.routines import SCRATCH, TEAM, Parameter, finished, passed, routine, structure, used
from tc.codegen.printer.storage import kept_variable
from tc.codegen.printer.streams import begin, channel_parameters, map_parameters, maps_of
from tc.codegen.printer.streams import channels as channels_of
from tc.codegen.text.dialect import Dialect, GridWords
from tc.codegen.text.fragment import NO_NAMES, Fragment, call, filled, infix, named
from tc.codegen.text.lines import braced
from tc.codegen.text.names import loop_variable
from tc.language.program.guards import guarded_reads
from tc.polyhedral.analysis.ranges import Range, Ranges, range_of
from tc.polyhedral.execution.streamed import stream_in
from tc.polyhedral.execution.thread_registers import ThreadRegisters
from tc.polyhedral.generate.thread_orders import thread_order
from tc.polyhedral.ir.launch_order import Digit, LaunchOrder
from tc.polyhedral.ir.loops import (
    Barrier,
    Buffer,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    leaves,
)
from tc.polyhedral.ir.streams import FILLING_WARPS
from tc.polyhedral.ir.swizzle import SWIZZLED_ROWS
from tc.polyhedral.proof.printed.verify_block_order import prove_block_order
from tc.polyhedral.proof.printed.verify_thread_order import prove_thread_order

# In the emulator, blocks and threads run in another order at every launch.
_ORDER: Final = (
    "static int64_t launches;",
    "const int64_t order = __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);",
)


def launch(printer: TreePrinter, tree: LoopTree, scope: Scope) -> Printed:
    """Runs all threads of all blocks, each of them by one call of a routine of its own.

    What has no loops over blocks and threads runs on a single one.
    """
    context = printer.context
    launched = launch_of(tree, scope.ranges)
    found = stream_in(tree)
    if found is not None:
        launched = replace(launched, fillers=FILLING_WARPS)
    order = _order(context, tree, launched)
    assert found is None or order is None, "the threads of a stream are as the hardware numbers them"
    fixed = LaunchOffsets({c.variable: Range(0, c.extent - 1) for c in launched.coordinates}, context.dialect)
    body = finished(printer.tree(tree, replace(scope, launch=launched, fixed=fixed)), context.dialect)
    offsets = (
        kept_variable(context.dialect, name, sum)
        if copied
        else line("const {} {} = {};", context.dialect.index, named(name), sum)
        for name, sum, copied in fixed.computed()
    )
    shared, body = together(_shared(context, launched)), together((*offsets, body))
    filling, maps = Printed(()), tuple[TensorMap, ...]()
    if found is not None:
        outside = replace(scope, launch=launched)
        for loop in found.above:
            _, outside = mapped_loop(loop, outside)
        filling = begin(printer, found, outside, math.prod(launched.block))
        maps = maps_of(context, found.stream) if context.dialect.grids is not None else ()
    if context.dialect.grids is None:
        body = shared + filling + body
    index = named(context.dialect.index)
    around = (
        Parameter(index, "", loop_variable(depth), "", Argument(Place.STEP, depth)) for depth in range(scope.depth)
    )
    exchanged = _exchanged(context, tree)
    captured = tuple(
        replace(p, qualifier="") if p.name in exchanged else p
        for p in used((*context.parameters, *around), filling + body)
        if p != SCRATCH
    )
    channels = tuple[Parameter, ...]()
    if found is not None and context.dialect.grids is not None and context.dialect.matrices is not None:
        words = context.dialect.matrices.groups.streams
        captured = (*map_parameters(found.stream), *captured)
        shared = channels_of(words, found.stream) + shared
        channels = channel_parameters(words)
    label = f"tc_kernel_{scope.functions + len(body.facts.functions)}"
    buffers = (
        Parameter(filled("{} *", context.storage(own.layout.type)), "", name, name)
        for own, _ in launched.shared
        for name in (context.names.tensors[own.name],)
    )
    own_names = (*buffers, *channels)
    blocks = _block_order(context, tree, launched)
    kernel = _Kernel(label, context.dialect, launched, captured, body, shared, own_names, order, blocks, filling, maps)
    if context.dialect.grids is not None:
        own = _grid_kernel(kernel, context.dialect.grids, context.program)
    elif TEAM.name in body.facts.names:
        own = _launch_team(kernel)
    else:
        own = _launch_threads(kernel)
    return Printed(own.lines, replace(body.facts, private_bytes=0, sums=0, names=NO_NAMES) | own.facts)


@frozen
class _Kernel:
    """What one thread does: ``body``, which mentions the parameters ``captured``.

    ``shared``: declares the ``buffers`` that the threads of a block share, where the body does not.  ``order``: of the
    threads of a block, ``blocks``: of those of the grid; None: as the hardware numbers them.
    ``filling``: what threads do before, from which some return; ``maps``: of the tensors of which these copy boxes.
    """

    label: str
    dialect: Dialect
    launch: Launch
    captured: tuple[Parameter, ...]
    body: Printed
    shared: Printed
    buffers: tuple[Parameter, ...]
    order: LaunchOrder | None = None
    blocks: LaunchOrder | None = None
    filling: Printed = field(default_factory=lambda: Printed(()))
    maps: tuple[TensorMap, ...] = ()


def _order(context: Context, tree: LoopTree, launched: Launch) -> LaunchOrder | None:
    """That in which warps read little from shared memory, on machines that have warps."""
    if context.dialect.grids is None or context.dialect.exchange is None:
        return None
    found = thread_order(tree, launched.block, context.bodies, context.program.promoted)
    if found is not None:
        prove_thread_order(tree, launched.block, found)
    return found


def _block_order(context: Context, tree: LoopTree, launched: Launch) -> LaunchOrder | None:
    """That in which the second-level cache has little to hold, on machines that are known to have one."""
    program = context.program
    if context.dialect.grids is None or context.dialect.exchange is None or len(launched.grid) > len(AXES):
        return None
    found = block_order(tree, launched.grid, context.bodies, program.promoted, program.multiprocessors)
    if found is not None:
        prove_block_order(launched.grid, found)
    return found


def _launch_threads(kernel: _Kernel) -> Printed:
    """Runs the threads of all blocks one after the other."""
    index, coordinates = named(kernel.dialect.index), kernel.launch.coordinates
    numbers = used((Parameter(index, "", c.variable, c.variable) for c in coordinates), kernel.body)
    parameters = (*kernel.captured, *numbers)
    function = routine(kernel.label, parameters, kernel.body, kernel.dialect)
    called = line("{}({});", kernel.label, passed(parameters))
    for c in reversed(coordinates):
        turn = named(f"{c.variable}_turn")
        value = call("tc_in_order", turn, Fragment(str(c.extent)), named("order"))
        number = line("const {} {} = {};", index, named(c.variable), value)
        called = (number + called).braced(filled("for (int64_t {0} = 0; {0} < {1}; {0} += 1)", turn, c.extent))
    return (called.between(_ORDER).braced() if coordinates else called).with_facts(Facts((function,)))


def _exchanged(context: Context, tree: LoopTree) -> frozenset[str]:
    """The pointers to tensors through which the threads of a block may hand each other something.

    They are not ``restrict``, which promises that no other pointer writes there: compilers could keep behind a barrier
    what they read before it.
    """
    found = list(leaves(tree))
    if not any(isinstance(leaf, Barrier) for leaf in found):
        return frozenset()
    names = {leaf.statement for leaf in found if isinstance(leaf, Instance)}
    bodies = [body for name, body in context.bodies.items() if name in names]
    read = {body.target for body in bodies if body.reduction is not None}
    for body in bodies:
        read |= {own.read.tensor for value in (body.value, *body.subscripts) for own in guarded_reads(value)}
    written = {body.target for body in bodies}
    return frozenset(context.names.tensors[tensor] for tensor in read & written if tensor not in context.promoted)


def _grid_kernel(kernel: _Kernel, words: GridWords, program: LoopProgram) -> Printed:
    """The kernel as a function of its own; the run time launches it."""
    launched, captured = kernel.launch, kernel.captured
    sizes = (launched.sizes(LoopKind.BLOCK), launched.sizes(LoopKind.THREAD))
    given = tuple(p.given for p in captured if p.given is not None)
    grid = GridKernel(kernel.label, *sizes, launched.shared_bytes, given, kernel.maps)
    begin = [line("{} += {};", named(p.name), p.before) for p in captured if words.from_lowest and p.before]
    steps = {p.name: _step(p, kernel.dialect) for p in captured if p.given is not None and p.given.place is Place.STEP}
    captured = tuple(steps.get(p.name, p) for p in captured)
    for name, own in steps.items():
        begin.append(line("const {} {} = {};", kernel.dialect.index, named(name), named(own.name)))
    if kernel.order is not None:
        begin.append(line("const {} {} = {};", _UNSIGNED, _NUMBER, _thread_number(launched, words)))
    if kernel.blocks is not None:
        begin.append(line("const {} {} = {};", _UNSIGNED, _BLOCK_NUMBER, _block_number(launched, words)))
    orders = iter(kernel.order.digits if kernel.order is not None else ())
    for c in launched.coordinates:
        word = words.block if c.kind is LoopKind.BLOCK else words.thread
        value = c.value(word.format(axis=AXES[c.axis], number=c.axis))
        if c.kind is LoopKind.BLOCK and kernel.blocks is not None and c.axis < len(kernel.blocks.digits):
            value = _sum(kernel.blocks.digits[-1 - c.axis], grid.grid[0] * grid.grid[1], _BLOCK_NUMBER)
        elif c.kind is LoopKind.THREAD and (digits := next(orders, None)) is not None:
            value = _sum(digits, grid.threads, _NUMBER)
        if c.variable in kernel.body.facts.names | kernel.filling.facts.names:
            begin.append(line("const {} {} = {};", kernel.dialect.index, named(c.variable), value))
    begin.append(kernel.shared)
    x, y, z = grid.block
    registers = ThreadRegisters(grid.threads, math.prod(grid.grid), program.multiprocessors)
    versions, body = _in_versions(kernel)
    resident = max(program.resident, registers.resident(kernel.body.facts.sums))
    header = words.kernel.format(threads=grid.threads, x=x, y=y, z=z, resident=resident)
    function = routine(kernel.label, captured, together((*begin, body)), replace(kernel.dialect, routine=header))
    return Printed((), Facts((together((*versions, function)),), grids=(grid,)))


# How a function begins of which there are versions.
_VERSIONS: Final = "template <bool {}> static __forceinline__"


def _in_versions(kernel: _Kernel) -> tuple[tuple[Printed, ...], Printed]:
    """The function that a kernel calls where something depends on how tensors are aligned, and what the kernel does.

    What is copied in vectors in loops would ask there again and again.
    """
    aligned = kernel.body.facts.aligned
    if not aligned:
        return (), kernel.body
    dialect, index = kernel.dialect, named(kernel.dialect.index)
    places = (Parameter(index, "", c.variable, c.variable) for c in kernel.launch.coordinates)
    parameters = (*kernel.captured, *used((*kernel.buffers, *places), kernel.body))
    label = f"{kernel.label}_run"
    parameters = tuple(own for own in parameters if own.given is None or own.given.place is not Place.MAP)
    function = routine(label, parameters, kernel.body, replace(dialect, routine=_VERSIONS.format(ALIGNED)))
    bytes = max(own for _, own in aligned)
    every = reduce(
        partial(infix, "|"),
        (filled("({}){}", named("uintptr_t"), named(name)) for name in sorted({n for n, _ in aligned})),
    )
    calls = [line("{}<{}>({});", named(label), version, passed(parameters)) for version in ("true", "false")]
    condition = filled("(({}) & {}) == 0", every, bytes - 1)
    asked = Printed(())
    if kernel.filling.lines:
        asked = line("const bool {} = {};", named(ALIGNED), condition) + kernel.filling
        condition = named(ALIGNED)
    whole = calls[0].braced(filled("if ({})", condition))
    return (function.between((), ("",)),), asked + whole + calls[1].braced(ELSE)


_UNSIGNED: Final = "unsigned"
_NUMBER: Final = "thread"
_BLOCK_NUMBER: Final = "block"


def _thread_number(launched: Launch, words: GridWords) -> str:
    """Of a thread in its block, as the hardware counts."""
    x, y, _ = launched.sizes(LoopKind.THREAD)
    along = [words.thread.format(axis=AXES[n], number=n) for n in range(2)]
    return along[0] if y == 1 else f"{x} * {along[1]} + {along[0]}"


def _block_number(launched: Launch, words: GridWords) -> str:
    """Of a block along x and y, as the hardware counts."""
    x, y = (words.block.format(axis=AXES[n], number=n) for n in range(2))
    return f"{launched.sizes(LoopKind.BLOCK)[0]} * {y} + {x}"


def _sum(digits: tuple[Digit, ...], threads: int, number: str) -> str:
    """The iteration of a thread or a block with a number, of so many."""
    found: list[str] = []
    for own in reversed(digits):
        value = number if own.below == 1 else f"{number} / {own.below}"
        value += f" % {own.count}" if own.below * own.count < threads else ""
        found.append(value if own.factor == 1 else f"{value} * {own.factor}")
    return " + ".join(found)


def _step(iterator: Parameter, dialect: Dialect) -> Parameter:
    """What a launch gives for the iterator of a loop around it, whatever the type of indices is."""
    return replace(iterator, type=named(dialect.values[ScalarType.INT32]), name=f"{iterator.name}_step")


def _shared(context: Context, launched: Launch) -> Iterator[Printed]:
    """The declarations of the buffers that the threads of a block share.

    In the emulator, and on CUDA where the launch says how much memory there is, they lie in it one after the other.
    """
    words = context.dialect.grids
    arrays = words is not None and (words.dynamic_shared is None or launched.shared_bytes <= STATIC_SHARED)
    if words is not None and words.dynamic_shared is not None and launched.shared and not arrays:
        most = max(_alignment(buffer) for buffer, _ in launched.shared)
        yield Printed([words.dynamic_shared.format(alignment=most)])
    for buffer, place in launched.shared:
        type, name = context.storage(buffer.layout.type), context.pointer(buffer.name)
        if words is not None and arrays:
            count, alignment = max(buffer.layout.span, 1), _alignment(buffer)
            yield line(words.shared, type=type, name=name, count=count, alignment=alignment)
        else:
            yield line("{0} *{1} = ({0} *)({2} + {3});", type, name, context.dialect.shared.filled(), place)


def _alignment(buffer: Buffer) -> int:
    return SWIZZLED_ROWS if buffer.swizzle else ALIGNMENT


def _launch_team(kernel: _Kernel) -> Printed:
    """Runs the threads of every block together, so that they can wait for each other."""
    label, captured, launched = kernel.label, kernel.captured, kernel.launch
    places = {c.variable: c.value(f"{TEAM.name}->{c.kind.value}[{c.axis}]") for c in launched.coordinates}
    index = named(kernel.dialect.index)
    own = used((Parameter(index, "", name, value) for name, value in places.items()), kernel.body)
    arguments = ", ".join((*(f"arguments->{p.name}" for p in captured), TEAM.name, *(p.argument for p in own)))
    entry = [f"const struct {label}_arguments *arguments = {TEAM.name}->arguments;", f"{label}({arguments});"]
    function = routine(label, (*captured, TEAM, *own), kernel.body, kernel.dialect).between(
        [*structure(f"{label}_arguments", captured), ""],
        ["", *braced(f"static void {label}_thread({TEAM.field})", entry)],
    )
    grid, block = (", ".join(map(str, launched.sizes(kind))) for kind in (LoopKind.BLOCK, LoopKind.THREAD))
    sizes = f"{launched.shared_bytes}, {kernel.body.facts.private_bytes}"
    run = call("tc_run_team", Fragment(f"&arguments, {label}_thread, grid, block, {sizes}, order"))
    diverged = named("diverged")
    lines = (
        line("const struct {}_arguments arguments = {{{}}};", label, passed(captured)),
        Printed([f"const int64_t grid[3] = {{{grid}}}, block[3] = {{{block}}};", *_ORDER]),
        line("const int {} = {};", diverged, run),
        line("if ({}) {}", diverged, kernel.dialect.report.filled(faulted=diverged)),
    )
    return together(lines).braced().with_facts(Facts((function,)))


def mapped_loop(loop: Loop, scope: Scope) -> tuple[tuple[IndexExpression, ...], Scope]:
    """Whether the loop has the iteration that this block or thread is, and the scope of its body, which says which."""
    assert scope.launch is not None
    variable, extent = scope.launch.variable(loop.kind), scope.launch.extent(loop.kind)
    inner = replace(
        scope.inside(loop),
        variables={**scope.variables, loop.iterator: named(variable)},
        depth=scope.depth,
        launch=scope.launch.inside(loop.kind),
    )
    return tuple(_conditions(loop, extent, scope.ranges)), inner


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
