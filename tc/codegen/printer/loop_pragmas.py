"""Loop pragmas: vectorization and unrolling, as lines before a loop."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, assert_never

from tc.base.types import ScalarType, computation_type
from tc.codegen.index.shared_vectors import ENOUGH_REGISTERS, WRITTEN_OUT
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import FAULTED
from tc.codegen.printer.printed import Facts, Printed, line
from tc.codegen.text.fragment import Fragment, named
from tc.language.program.program import Reduction, reads_in
from tc.polyhedral.analysis.access_boxes import trips
from tc.polyhedral.analysis.accumulate import REACHED, Accumulation, accumulator_name
from tc.polyhedral.analysis.element_counts import goes_on, most_trips
from tc.polyhedral.analysis.ranges import Ranges, iterator_range
from tc.polyhedral.ir.loops import (
    MOST_UNROLLED,
    Allocation,
    Block,
    Copy,
    Guard,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    Matrices,
    Prefetch,
    Scheduled,
    leaves,
)

# Vectors of fewer lanes are no quicker than single elements.
_FEWEST_LANES: Final = 4
# A loop of unknown length is unrolled so often.
_UNROLL_UNKNOWN: Final = 4
# A run of a long sum in a tile: with so few iterations, processors foresee where it ends.  Of one in lanes, GCC 12
# makes two loops otherwise.
_UNROLL_TILE: Final = 4
_UNROLL_LANES: Final = 2
# Instances in the body of a loop around unrolled ones, when some of its iterations run one after the other: enough
# that what neighbouring iterations read side by side is read at once, and few enough for the cache of instructions.
_UNROLLED_INSTANCES: Final = 256
# And around loops that are unrolled so: the rows of taps of a convolution, which share rows of the image.
_UNROLLED_TAPS: Final = 512
_WORD: Final = 4
# Neighbours along memory that are read at once.
_VECTOR: Final = 4
# Copies that compilers have on their way at once by themselves, and as many as take no more than 48 registers.
_FEW_COPIES: Final = 4
_COPIES: Final = 12
# Reductions in lanes that are declared in ``numerics.h``.
_LANES: Final = {Reduction.MINIMUM: "least", Reduction.MAXIMUM: "greatest"}


def loop_pragmas(context: Context, loop: Loop, scope: Scope, body: Facts) -> Printed:
    """The pragmas of a loop whose ``body`` has these facts."""
    dialect = context.dialect
    match loop.kind:
        case LoopKind.VECTOR:
            # Lanes must not share a variable; the compiler finds by itself that only faults do.
            return _vector_pragma(context, loop) if dialect.vector and FAULTED not in body.names else Printed(())
        case LoopKind.REDUCTION if dialect.grids is None:
            return _reduction_pragmas(context, loop, scope.accumulation, body)
        case LoopKind.UNROLLED | LoopKind.REDUCTION:
            count = _trips(loop, scope.ranges)
            return _unrolled(context, loop, min(count, MOST_UNROLLED) if count is not None else _UNROLL_UNKNOWN)
        case LoopKind.SEQUENTIAL if dialect.grids is not None and _is_left_over(loop, scope.ranges):
            return Printed([dialect.unroll.format(count=1)] if dialect.unroll else [])
        case LoopKind.SEQUENTIAL if dialect.grids is not None:
            return _unrolled(context, loop, max(repetitions(loop, scope.ranges), _copies_at_once(loop)))
        case LoopKind.SEQUENTIAL if context.vector_registers < ENOUGH_REGISTERS and _presses(context, loop, scope):
            return Printed([dialect.unroll.format(count=1)] if dialect.unroll else [])
        case LoopKind.SEQUENTIAL if goes_on(loop) and not _holds_loop(loop.body, LoopKind.SEQUENTIAL):
            return _unrolled(context, loop, _runs_at_once(loop.body))
        case LoopKind.SEQUENTIAL | LoopKind.PARALLEL | LoopKind.REGISTER | LoopKind.LAUNCH:
            return Printed(())
        case LoopKind.FULLY_UNROLLED | LoopKind.BLOCK | LoopKind.THREAD | LoopKind.LANES:
            raise AssertionError("they are no loops in the text")
        case _:
            assert_never(loop.kind)


def _vector_pragma(context: Context, loop: Loop) -> Printed:
    """The pragma, with fewer lanes than a register holds where more of the iterations are in whole vectors then.

    What is left at the end of a loop runs one by one.
    """
    vector, clause, count = context.dialect.vector, context.dialect.vector_lanes, trips(loop)
    if vector is None or clause is None or count is None:
        return Printed([vector] if vector else [])
    bodies = [context.bodies[leaf.statement] for leaf in leaves(loop.body) if isinstance(leaf, Scheduled)]
    tensors = {name for body in bodies for name in (body.target, *(read.tensor for read in reads_in(body.value)))}
    sizes = {context.layouts[name].type.itemsize for name in tensors}
    most = context.vector_bytes // max(sizes, default=context.vector_bytes)
    choices = [lanes for lanes in (most, most // 2, most // 4) if lanes >= _FEWEST_LANES]
    best = min(choices, key=lambda lanes: count // lanes + count % lanes, default=most)
    return Printed([vector]) if best == most or len(sizes) > 1 else line("{} {}", vector, clause.filled(lanes=best))


def _unrolled(context: Context, loop: Loop, count: int) -> Printed:
    template = context.dialect.unroll
    if context.dialect.grids is not None and count > 1 and not _has_constant_bounds(loop):
        # By a power of two: NVRTC 13.5 unrolled some such loops by three and by five, and then ran whole bodies only,
        # five iterations in place of two.
        count = 1 << (count.bit_length() - 1)
    return Printed([template.format(count=count)] if template and count > 1 else [])


def _trips(loop: Loop, ranges: Ranges) -> int | None:
    """The most iterations; None where no bound is known."""
    found = most_trips(loop, ranges)
    return None if math.isinf(found) else int(found)


def _has_constant_bounds(loop: Loop) -> bool:
    return isinstance(loop.lower, IndexLiteral) and isinstance(loop.upper, IndexLiteral)


def repetitions(loop: Loop, ranges: Ranges) -> int:
    """The unroll factor of a loop around unrolled ones, which access private arrays."""
    trips = _trips(loop, ranges)
    inside = _unrolled_instances(loop.body, {**ranges, loop.iterator: iterator_range(loop, ranges)})
    if not trips or not inside or inside == 1:
        return 1
    if inside > _UNROLLED_INSTANCES // trips and _holds_loop(loop.body, LoopKind.SEQUENTIAL):
        return trips if trips * inside <= _UNROLLED_TAPS else 1
    most = min(trips, max(1, _UNROLLED_INSTANCES // inside))
    fitting = [count for count in range(most, 0, -1) if trips % count == 0]
    vectors = [count for count in fitting if count % _VECTOR == 0 and 2 * count > fitting[0]]
    return next(iter(vectors or fitting))


def _is_left_over(loop: Loop, ranges: Ranges) -> bool:
    """Whether it goes through the last tile of a reduction, which may be shorter: once, around unrolled loops."""
    cut = isinstance(loop.upper, IndexOperation) and loop.upper.operator is IndexOperator.MINIMUM
    inside = _unrolled_instances(loop.body, {**ranges, loop.iterator: iterator_range(loop, ranges)}) if cut else None
    return inside is not None and inside > 1


def _copies_at_once(loop: Loop) -> int:
    """The unroll factor of a long loop that only copies: what it reads is on its way at the same time."""
    count, body = trips(loop) or 0, loop.body
    copied = body.body if isinstance(body, Loop) and body.kind is LoopKind.VECTOR else body
    if not isinstance(copied, Copy) or copied.group is not None or count <= _FEW_COPIES:
        return 1
    return next(n for n in range(min(count, _COPIES), 0, -1) if count % n == 0)


def _unrolled_instances(tree: LoopTree, ranges: Ranges) -> int | None:
    """The instances of a tree whose loops are unrolled as a whole; None for others, and where some are left out."""
    match tree:
        case Loop(kind=LoopKind.UNROLLED):
            trips = _trips(tree, ranges)
            inside = _unrolled_instances(tree.body, {**ranges, tree.iterator: iterator_range(tree, ranges)})
            return None if trips is None or inside is None else trips * inside
        case Loop(kind=LoopKind.SEQUENTIAL) if (trips := _trips(tree, ranges)) == repetitions(tree, ranges) != 1:
            inside = _unrolled_instances(tree.body, {**ranges, tree.iterator: iterator_range(tree, ranges)})
            return None if trips is None or inside is None else trips * inside
        case Loop() | Allocation() | Guard():
            return None
        case Block(children):
            counts = [_unrolled_instances(child, ranges) for child in children]
            return None if None in counts else sum(count for count in counts if count is not None)
        case Scheduled():
            return 1
        case Matrices(nest=nest):
            return (
                _unrolled_instances(nest.body if isinstance(nest, Loop) else nest.then, ranges) or _UNROLLED_INSTANCES
            )
        case Prefetch():
            return 0
        case _:
            assert_never(tree)


def _reduction_pragmas(context: Context, loop: Loop, found: Accumulation | None, body: Facts) -> Printed:
    vector, clause = context.dialect.vector, context.dialect.vector_reduction
    if found is None or vector is None or clause is None or _holds_loop(loop.body, LoopKind.REDUCTION):
        return Printed(())
    if found.lanes is not None:
        return Printed([vector] if body.names.isdisjoint((FAULTED, REACHED)) else [])
    (partial,) = found.partials
    type = computation_type(context.layouts[partial.body.target].type)
    if type is ScalarType.BOOL:
        return Printed(())
    operator = Fragment(partial.reduction.value)
    if type.is_floating and partial.reduction in _LANES:
        operator = named(f"tc_{_LANES[partial.reduction]}_{type}")
    kept = [(operator, accumulator_name(partial, found)), (Fragment("|"), REACHED), (Fragment("max"), FAULTED)]
    clauses = [clause.filled(operator=symbol, variable=named(name)) for symbol, name in kept if name in body.names]
    return line(" ".join(("{}", *("{}" for _ in clauses))), vector, *clauses)


def _runs_at_once(tree: LoopTree) -> int:
    """The unroll factor of a sequential loop over the rows and lanes of a tile, or over lanes."""
    if _holds_loop(tree, LoopKind.REGISTER) or _holds_loop(tree, LoopKind.VECTOR):
        return _UNROLL_TILE
    return _UNROLL_LANES if _holds_loop(tree, LoopKind.REDUCTION) else 1


def _presses(context: Context, loop: Loop, scope: Scope) -> bool:
    """Whether unrolled taps of a window take more registers than a register tile leaves.

    Compilers keep what several taps read, and masks of lanes, in registers, and then sums of the tile in memory.
    """
    registers, count = list(_loops(loop.body, LoopKind.REGISTER)), _trips(loop, scope.ranges)
    sums = math.prod(trips(own) or 1 for own in registers) * _vectors(context, loop.body)
    if 2 * sums <= context.vector_registers or count is None or _holds_loop(loop.body, LoopKind.SEQUENTIAL):
        return False
    masked = _lanes(loop.body) * _WORD % max(context.vector_bytes, _WORD) != 0
    return (masked and count <= WRITTEN_OUT) or _slides(context, loop, scope, count)


def _slides(context: Context, loop: Loop, scope: Scope, count: int) -> bool:
    """Whether rows of a register tile read in one iteration what others read in another one, as those of windows do."""
    rows = [own.iterator for own in _loops(loop.body, LoopKind.REGISTER)]
    for leaf in leaves(loop.body):
        if not isinstance(leaf, Scheduled) or isinstance(leaf, Copy):
            continue
        body, site = context.bodies[leaf.statement], context.site(leaf, scope)
        for read in reads_in(body.value) if body.reduction is not None else ():
            form = context.expressions.offset(read.tensor, read.subscripts, site)
            own = None if form is None else form.slope(loop.iterator)
            steps = [] if form is None or not own else [form.slope(row) for row in rows]
            if own and any(step and step % own == 0 and abs(step // own) < count for step in steps):
                return True
    return False


def _vectors(context: Context, tree: LoopTree) -> int:
    """The vectors in a row of a register tile, of elements of four bytes."""
    return -(-_lanes(tree) * _WORD // max(context.vector_bytes, _WORD))


def _lanes(tree: LoopTree) -> int:
    return max((trips(own) or 1 for own in _loops(tree, LoopKind.VECTOR)), default=1)


def _loops(tree: LoopTree, wanted: LoopKind) -> Iterator[Loop]:
    """The loops of a kind in a tree."""
    match tree:
        case Loop(kind=kind, body=body):
            yield from (tree,) if kind is wanted else ()
            yield from _loops(body, wanted)
        case Allocation(_, body):
            yield from _loops(body, wanted)
        case Guard(_, then, otherwise):
            yield from _loops(then, wanted)
            yield from () if otherwise is None else _loops(otherwise, wanted)
        case Block(children):
            for child in children:
                yield from _loops(child, wanted)
        case Leaf():
            return
        case _:
            assert_never(tree)


def _holds_loop(tree: LoopTree, wanted: LoopKind) -> bool:
    match tree:
        case Allocation(_, body):
            return _holds_loop(body, wanted)
        case Loop(kind=kind, body=body):
            return kind is wanted or _holds_loop(body, wanted)
        case Guard(_, then, otherwise):
            return _holds_loop(then, wanted) or (otherwise is not None and _holds_loop(otherwise, wanted))
        case Block(children):
            return any(_holds_loop(child, wanted) for child in children)
        case Leaf():
            return False
        case _:
            assert_never(tree)
