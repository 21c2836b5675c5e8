"""Prints the loops of a kernel: statements, loops with their pragmas, and outlined loops: parallel and long ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.codegen.index.hoisted_reads import HoistedRead, hoisted_reads
from tc.codegen.index.indices import after, require_fit, trip_count
from tc.codegen.index.kept_offsets import KeptOffsets
from tc.codegen.index.masked_loads import LANES, interleaves_masked_loads
from tc.codegen.printer.accumulators import AccumulatorPrinter
from tc.codegen.printer.context import Context, Scope, one_after_another
from tc.codegen.printer.copies import copying_call, filling_piece
from tc.codegen.printer.lane_totals import lane_total
from tc.codegen.printer.launches import launch, mapped_loop
from tc.codegen.printer.loop_pragmas import loop_pragmas
from tc.codegen.printer.matrices import group_instructions, matrix_instructions
from tc.codegen.printer.printed import ELSE, Facts, Printed, line, together
from tc.codegen.printer.range_bounds import range_bounds
from tc.codegen.printer.registers import RegisterPrinter
from tc.codegen.printer.routines import (
    SCRATCH,
    Parameter,
    finished,
    passed,
    region,
    region_call,
    routine,
    used,
)
from tc.codegen.printer.scatters import around, hoisted
from tc.codegen.printer.statements import barrier, prefetch, statement
from tc.codegen.printer.storage import declared, is_over_tiles, own_storage
from tc.codegen.printer.streams import printed_users
from tc.codegen.printer.tile import NotVectorsError
from tc.codegen.printer.totals import ArrayTotals, TotalNames, folds_in, folds_of_variables
from tc.codegen.text.fragment import NO_NAMES, Fragment, all_of, filled, named
from tc.codegen.text.lines import braced
from tc.codegen.text.names import loop_variable
from tc.codegen.text.numerics import changes_in_lanes
from tc.polyhedral.analysis.accumulate import Accumulation, accumulation, lane_of
from tc.polyhedral.analysis.ranges import always_runs
from tc.polyhedral.execution.streamed import is_stream
from tc.polyhedral.execution.thread_registers import ThreadRegisters
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Buffer,
    GroupMma,
    Guard,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    Mma,
    Prefetch,
    conjuncts,
    leaves,
)
from tc.polyhedral.ir.totals import Total

_ITERATION: Final = "iteration"
# Of what is worth a call.
_OUTLINED_LINES: Final = 64


@frozen
class KernelPrinter:
    """Prints the loop trees of one kernel; see ``TreePrinter``."""

    context: Context

    def tree(self, tree: LoopTree, scope: Scope) -> Printed:
        """What runs a loop tree."""
        match tree:
            case Block(children):
                return self._sequence(_joined(children) if self.context.dialect.grids else children, scope)
            case Guard(otherwise=otherwise) if otherwise is not None:
                return self._branches(tree, otherwise, scope)
            case Loop(kind=LoopKind.BLOCK | LoopKind.THREAD) if scope.launch is None:
                return launch(self, tree, scope)
            case Guard() | Loop(kind=LoopKind.BLOCK | LoopKind.THREAD):
                return self._conditional(tree, scope)
            case Loop(kind=LoopKind.PARALLEL) if not scope.parallel:
                return self._parallel_loop(tree, scope)
            case Loop(kind=LoopKind.LAUNCH):
                return self._loop(tree, scope)
            case Loop(kind=LoopKind.LANES):
                return lane_total(self.context, tree, scope)
            case Loop() if (call := copying_call(self, tree, scope)) is not None:
                return call
            case Loop() if is_stream(tree) and scope.launch is not None:
                plain = None if self.context.dialect.grids is None else self._reducing_loop(tree, scope)
                return printed_users(self, tree, scope, plain)
            case Loop():
                return self._reducing_loop(tree, scope)
            case Allocation(buffer, body):
                return self._allocation(buffer, body, scope)
            case Barrier() | Instance() | Mma() | GroupMma() | Prefetch():
                return self._leaf(tree, scope)
            case _:
                assert_never(tree)

    def _leaf(self, tree: Barrier | Instance | Mma | GroupMma | Prefetch, scope: Scope) -> Printed:
        match tree:
            case Barrier():
                return barrier(self.context, tree)
            case Instance():
                return statement(self.context, tree, scope)
            case Mma():
                return matrix_instructions(self.context, tree, scope)
            case GroupMma():
                return group_instructions(self.context, tree, scope)
            case Prefetch():
                return prefetch(self.context, tree, scope)
            case _:
                assert_never(tree)

    def _branches(self, guard: Guard, otherwise: LoopTree, scope: Scope) -> Printed:
        test = filled("if ({})", self.context.index(guard.condition, scope))
        printed = self.tree(guard.then, scope.where(guard.condition)).braced(test)
        other = self.tree(otherwise, scope.behind(printed.facts))
        if not isinstance(otherwise, Guard):
            return printed + other.braced(ELSE)
        return printed + Printed([f"{ELSE} {other.lines[0]}", *other.lines[1:]], other.facts)

    def _conditional(self, tree: LoopTree, scope: Scope) -> Printed:
        """What runs where all conditions hold that stand around it, one inside of the other."""
        conditions: list[Fragment] = []
        while True:
            match tree:
                case Block((alone,)):
                    tree = alone
                case Guard(condition, then, None):
                    conditions += (self.context.index(own, scope) for own in conjuncts(condition))
                    tree, scope = then, scope.where(condition)
                case Loop(kind=LoopKind.BLOCK | LoopKind.THREAD) if scope.launch is not None:
                    found, scope = mapped_loop(tree, scope)
                    conditions += (self.context.index(own, scope) for own in found)
                    tree = tree.body
                case _:
                    break
        printed = self.tree(tree, scope)
        return printed.braced(filled("if ({})", all_of(conditions))) if conditions else printed

    def _sequence(self, children: tuple[LoopTree, ...], scope: Scope) -> Printed:
        alone = sum(not isinstance(child, Prefetch) for child in children) == 1
        apart = self.context.dialect.vector is not None and sum(map(_repeats_tile, children)) > 1
        return one_after_another(
            children, scope, lambda child, here: self._child(child, here, alone=alone, apart=apart)
        )

    def _child(self, child: LoopTree, scope: Scope, *, alone: bool, apart: bool) -> Printed:
        printed = self.tree(child, scope)
        if apart and _repeats_tile(child):
            return self._outlined(printed, scope)
        # Where arrays are on a stack, they share it with those of others that are not needed at the same time.
        stacked = isinstance(child, Allocation) and not child.buffer.shared and self.context.dialect.grids is None
        return printed.braced() if stacked and not alone else printed

    def _allocation(self, buffer: Buffer, body: LoopTree, scope: Scope) -> Printed:
        if buffer.shared:
            assert scope.launch is not None, "blocks share memory in a grid only"
            return self.tree(body, scope)
        if buffer.name not in self.context.streamed:
            try:
                return RegisterPrinter(self, buffer).print(body, scope).braced()
            except NotVectorsError:
                pass
        declared, inside = own_storage(self.context, buffer, scope)
        return declared + self.tree(body, inside)

    # --- loops

    def _reducing_loop(self, loop: Loop, scope: Scope) -> Printed:
        """The loop, around which local variables keep what it reduces into, where they may."""
        found: Accumulation | None = None
        if (scatter := hoisted(self.context, loop, scope)) is not None:
            body, site = scatter
            printed = self._loop(loop, replace(scope, placed=scope.placed | {body.name}))
            return around(self.context, body, site, printed)
        if scope.accumulation is None:
            totals = any(total.buffer is None for total in loop.totals)
            # A pragma for lanes names one reduction only.
            several = self.context.dialect.vector is None or totals
            found = accumulation(loop, self.context.bodies, scope.ranges, several=several, always=totals)
        # What is added to the totals of an array inside of the loop has to be in the array by then.
        if found is None or any(
            any(folds_in(loop, p.body.name)) for p in found.partials if p.body.name in scope.totals
        ):
            return self._loop(loop, scope)
        before, behind = AccumulatorPrinter(self.context, loop, found).around(scope)
        return before + self._loop(loop, replace(scope, accumulation=found)) + behind

    def _loop(self, loop: Loop, scope: Scope) -> Printed:
        if self.context.dialect.vector is None or loop.kind not in LANES:
            return self._repeated(loop, scope)
        context = self.context
        every = hoisted_reads(loop, context.bodies, context.layouts, context.program.sizes, scope.ranges, scope.hoisted)
        if len(every) == len(scope.hoisted):
            return self._repeated(loop, scope)
        declared = together(self._hoisted(own, scope) for own in every[len(scope.hoisted) :])
        return (declared + self._repeated(loop, replace(scope, hoisted=every))).braced()

    def _hoisted(self, hoisted: HoistedRead, scope: Scope) -> Printed:
        """What loads an element into its variable."""
        context, read = self.context, hoisted.read
        source = context.expressions.location(read.tensor, read.subscripts, context.site(hoisted.instance, scope))
        type = context.storage(context.layouts[read.tensor].type)
        return line("const {} {} = {};", type, named(hoisted.name), source).declaring(named(hoisted.name))

    def _repeated(self, loop: Loop, scope: Scope) -> Printed:
        own = {total.statement: total for total in loop.totals if total.buffer is not None}
        inner = replace(scope.inside(loop), totals={**scope.totals, **own})
        if loop.kind is LoopKind.REDUCTION:
            inner = replace(inner, lane=lane_of(loop))
        kept = None
        if self.context.dialect.kept is not None and scope.kept is None and is_over_tiles(loop):
            kept = KeptOffsets(scope.variables)
            inner = replace(inner, kept=kept)
        elif scope.kept is not None and loop.kind is LoopKind.UNROLLED:
            inner = replace(inner, copying=(*scope.copying, loop))
        folds = folds_of_variables(self.context.dialect, loop, scope.accumulation)
        for fold in loop.folds:
            if fold.statement in inner.totals:
                folds += self._array_totals(inner.totals[fold.statement], scope).fold(fold)
        printed = self.loop(loop, scope, self.tree(loop.body, inner) + folds)
        for total in own.values():
            printed = self._array_totals(total, scope).around(loop, printed)
        return printed if kept is None else declared(self.context, kept, scope) + printed

    def _array_totals(self, total: Total, scope: Scope) -> ArrayTotals:
        assert total.buffer is not None
        names = TotalNames(str(self.context.pointer(total.buffer)))
        span, scalar = self.context.layouts[total.buffer].span, total.buffer in self.context.scalars
        grid, block = ((), ()) if scope.launch is None else (scope.launch.grid, scope.launch.block)
        registers = ThreadRegisters(math.prod(block), math.prod(grid), self.context.program.multiprocessors)
        return ArrayTotals(self.context.dialect, total, names, span, scalar, registers)

    def loop(self, loop: Loop, scope: Scope, body: Printed) -> Printed:
        """A loop around what was printed in ``scope.inside(loop)``."""
        context, dialect, inside = self.context, self.context.dialect, scope.inside(loop)
        name = inside.variables[loop.iterator]
        lower, end = context.index(loop.lower, scope), context.index(after(loop.upper), scope)
        if loop.ranges:
            lower, end = range_bounds(context, loop, scope, lower, end)
        require_fit(IndexOperation(IndexOperator.ADD, (loop.upper, IndexLiteral(loop.step))), scope.ranges, dialect)
        pragmas = loop_pragmas(context, loop, scope, body.facts)
        if dialect.scalar and interleaves_masked_loads(loop, context.bodies, context.layouts):
            body = body.between([dialect.scalar])
        if dialect.rotated_loops and always_runs(loop, scope.ranges) and self._waits(loop):
            declared, moved = line("{} {} = {};", dialect.index, name, lower), line("{} += {};", name, loop.step)
            *lines, last = braced("do", (body + moved).lines)
            repeated = Printed(lines, body.facts) + line("{} while ({} < {});", last, name, end)
            return (declared + pragmas + repeated).braced()
        header = filled("for ({0} {1} = {2}; {1} < {3}; {1} += {4})", dialect.index, name, lower, end, loop.step)
        return pragmas + body.braced(header)

    def _waits(self, loop: Loop) -> bool:
        """Whether there are barriers in the loop."""
        return any(isinstance(leaf, Barrier) for leaf in leaves(loop))

    def _parallel_loop(self, loop: Loop, scope: Scope) -> Printed:
        """The loop as a function for some of its iterations, and the call that has threads run all of them."""
        context, dialect, index = self.context, self.context.dialect, self.context.dialect.index
        inner = replace(scope.inside(loop), parallel=True)
        name = inner.variables[loop.iterator]
        body = self.tree(loop.body, inner)
        if dialect.scalar and (
            changes_in_lanes(body.facts.names) or interleaves_masked_loads(loop, context.bodies, context.layouts)
        ):
            # The chunk of a thread must not decide which iterations are left over from whole vectors.
            body = body.between([dialect.scalar])
        header = "for ({0} {1} = begin; {1} < end; {1} += 1)"
        if loop.step == 1:
            lower, end = context.index(loop.lower, scope), context.index(after(loop.upper), scope)
            body = filling_piece(context, loop, inner) or body.braced(filled(header, index, name))
        else:
            iteration = IndexVariable(_ITERATION)
            first = IndexOperation(IndexOperator.MULTIPLY, (iteration, IndexLiteral(loop.step)))
            value = IndexOperation(IndexOperator.ADD, (loop.lower, first))
            counted = named(_ITERATION)
            text = context.index(value, replace(scope, variables={**scope.variables, _ITERATION: counted}))
            lower, end = Fragment("0"), context.index(trip_count(loop), scope)
            body = (line("const {} {} = {};", index, name, text) + body).braced(filled(header, index, counted))
        body = finished(body, dialect)
        around = (Parameter(named(index), "", loop_variable(depth), "") for depth in range(scope.depth))
        captured = tuple(p for p in used((*context.parameters, *around), body) if p != SCRATCH)
        facts = body.facts
        label = f"tc_region_{scope.functions + len(facts.functions)}"
        condition = None if always_runs(loop, scope.ranges) else filled("if ({} < {})", lower, end)
        call = region_call(label, captured, lower, end).braced(condition)
        function = region(label, captured, body, scratch=SCRATCH.name in facts.names, dialect=dialect)
        return call.with_facts(replace(facts, names=NO_NAMES) | Facts((function,)))

    def _outlined(self, printed: Printed, scope: Scope) -> Printed:
        """What was printed of a loop around a register tile beside others, as the call of a function if it is long.

        GCC 12 takes more than proportionally longer for one function that holds all of them.
        """
        context = self.context
        if len(printed.lines) < _OUTLINED_LINES or _has_variables(scope):
            return printed
        index = named(context.dialect.index)
        around = (Parameter(index, "", loop_variable(depth), "") for depth in range(scope.depth))
        body = finished(printed, context.dialect)
        parameters = used((*context.parameters, *scope.buffers, *around), body)
        label = f"tc_nest_{scope.functions + len(printed.facts.functions)}"
        function = routine(label, parameters, body, context.dialect)
        called = line("{}({});", label, passed(parameters))
        return called.with_facts(replace(printed.facts, names=NO_NAMES) | Facts((function,)))


def _repeats_tile(tree: LoopTree) -> bool:
    """Whether it is a loop around a register tile."""
    return isinstance(tree, Loop) and _has_register_tile(tree.body)


def _has_register_tile(tree: LoopTree) -> bool:
    match tree:
        case Loop(kind=LoopKind.REGISTER):
            return True
        case Loop(body=body) | Allocation(body=body):
            return _has_register_tile(body)
        case Block(children):
            return any(map(_has_register_tile, children))
        case Guard(_, then, otherwise):
            return _has_register_tile(then) or (otherwise is not None and _has_register_tile(otherwise))
        case Leaf():
            return False
        case _:
            assert_never(tree)


def _has_variables(scope: Scope) -> bool:
    """Whether lines there may mention other variables than those of loops and buffers."""
    reduced = scope.accumulation is not None or scope.totals or scope.placed or scope.hoisted
    return bool(reduced or scope.launch is not None or scope.offsets is not None)


def _joined(children: tuple[LoopTree, ...]) -> tuple[LoopTree, ...]:
    """With one branch for those that follow each other on the same condition."""
    found: list[LoopTree] = []
    for child in children:
        match found, child:
            case [*_, Guard(before, first, None)], Guard(condition, then, None) if before == condition:
                found[-1] = Guard(condition, Block((first, then)), None)
            case _:
                found.append(child)
    return tuple(found)
