"""Prints the loops of a kernel: statements, loops with their pragmas, and outlined parallel loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from tc.base.grid import GridKernel
from tc.base.types import ScalarType, computation_type
from tc.codegen.index.indices import after, index_fragment, require_fit, trip_count
from tc.codegen.index.shared_offsets import SharedOffsets
from tc.codegen.printer.copies import copying_call
from tc.codegen.printer.expressions import ExpressionPrinter, Site
from tc.codegen.printer.lane_totals import lane_total
from tc.codegen.printer.launches import Launch, launch, mapped_loop
from tc.codegen.printer.loop_pragmas import loop_pragmas
from tc.codegen.printer.placement import ALIGNMENT, aligned
from tc.codegen.printer.registers import RegisterPrinter
from tc.codegen.printer.routines import SCRATCH, Parameter, braced, finished, mentioned, region, region_call
from tc.codegen.printer.totals import (
    ArrayTotals,
    TotalNames,
    fold_variable,
    folds_in,
    folds_of_variables,
    is_all_folded,
    lanes_of_total,
    total_of_variable,
)
from tc.codegen.printer.vector_statement import NotVectorsError
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, element, infix, prefix
from tc.codegen.text.literals import literal_fragment
from tc.codegen.text.names import Names, comment, loop_variable
from tc.codegen.text.numerics import changes_in_lanes
from tc.language.program.program import Literal, Read, Reduction
from tc.polyhedral.analysis.accumulate import (
    Accumulation,
    Partial,
    accumulation,
    accumulator_name,
    halves,
    lane_of,
    reached_name,
)
from tc.polyhedral.analysis.ranges import Ranges, always_runs, iterator_range
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import (
    LINE_BYTES,
    Allocation,
    Block,
    Buffer,
    Guard,
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
    Request,
    StatementBody,
    Total,
)

_FIRST_LANE: Final = IndexLiteral(0)
_ITERATION: Final = "iteration"
_LINE: Final = "line"
_EVERY_LANE: Final = "for ({} lane = 0; lane < {}; lane += 1)"
# Bytes of the smallest copy that ends by itself.
_LEAST_AHEAD: Final = 4
# Of buffers on the stack of a thread, which may have as few as 32 KiB in all.
_STACK_BYTES: Final = 8 << 10


@dataclass(frozen=True, slots=True)
class Scope:
    """What is around a node of the loop tree.

    ``variables``: names of loop iterators and symbolic sizes in the text.  ``parallel``: this runs inside a
    parallel loop.  ``accumulation``: the accumulator that the instances below reduce into; ``lane``: the lane in which
    they do.  ``innermost``: the printed loop right around the lanes of a register tile; ``offsets``: what its lanes
    share.  ``launch``: the grid that runs this.  ``stack``, ``scratch``: bytes of the thread's stack and scratch memory
    that buffers around the node take.  ``totals``: those of buffers, by the statement that adds to them.
    """

    variables: Mapping[str, str]
    ranges: Ranges = field(default_factory=dict)
    depth: int = 0
    parallel: bool = False
    accumulation: Accumulation | None = None
    lane: IndexExpression = _FIRST_LANE
    innermost: Loop | None = None
    offsets: SharedOffsets | None = None
    launch: Launch | None = None
    stack: int = 0
    scratch: int = 0
    totals: Mapping[str, ArrayTotals] = field(default_factory=dict)

    def inside(self, loop: Loop) -> Scope:
        """The scope of the loop's body."""
        return replace(
            self,
            variables={**self.variables, loop.iterator: loop_variable(self.depth)},
            ranges={**self.ranges, loop.iterator: iterator_range(loop, self.ranges)},
            depth=self.depth + 1,
        )


class KernelPrinter:
    """Prints one kernel.

    ``regions`` collects the outlined bodies of its parallel loops, inner parts first; ``scratch_bytes`` grows to what
    every thread needs, ``shared_bytes`` and ``private_bytes`` to what a block and a thread of the last grid do;
    ``partial_sums``: those in registers of one of its threads whose totals are in memory.
    """

    def __init__(
        self,
        program: LoopProgram,
        names: Names,
        parameters: tuple[Parameter, ...],
        dialect: Dialect,
        vector_bytes: int,
    ) -> None:
        self.vector_bytes = vector_bytes
        self.prefetch = program.prefetch
        self.resident = program.resident
        self._promoted = frozenset(buffer.name for buffer in program.promoted)
        # Buffers whose content is written past the caches, and the statement that does so.
        self.pieces = {
            body.value.tensor: body.name
            for body in program.bodies
            if body.target in program.streamed and isinstance(body.value, Read) and body.value.tensor in self._promoted
        }
        self._names = names
        self.dialect = dialect
        self.parameters = parameters
        self.bodies = {body.name: body for body in program.bodies}
        self.layouts = {
            buffer.name: buffer.layout for buffer in (*program.buffers, *program.temporaries, *program.promoted)
        }
        self.expressions = ExpressionPrinter(names, self.layouts, program.checked, dialect)
        self.regions: list[list[str]] = []
        self.scratch_bytes = 0
        self.shared_bytes = 0
        self.shared_places: dict[str, int] = {}
        self.private_bytes = 0
        self.partial_sums = 0
        self.grids: list[GridKernel] = []
        self.barriers = sorted(program.barriers)
        self.copied_ahead = program.copied_ahead
        self._pending = program.pending
        self._copied_for = program.copied_for
        self._exchanges = 0

    def tree(self, tree: LoopTree, scope: Scope) -> list[str]:
        """The lines that run a loop tree."""
        match tree:
            case Block(children):
                return [line for child in children for line in self._child(child, scope, alone=len(children) == 1)]
            case Guard(condition, then, otherwise):
                lines = braced(f"if ({self.index(condition, scope)})", self.tree(then, scope))
                return lines if otherwise is None else [*lines, *braced("else", self.tree(otherwise, scope))]
            case Loop(kind=LoopKind.BLOCK | LoopKind.THREAD):
                return launch(self, tree, scope) if scope.launch is None else mapped_loop(self, tree, scope)
            case Loop(kind=LoopKind.PARALLEL) if not scope.parallel:
                return self._parallel_loop(tree, scope)
            case Loop(kind=LoopKind.LANES):
                return lane_total(self, tree, scope)
            case Loop() if scope.accumulation is None and (call := copying_call(self, tree, scope)) is not None:
                return call
            case Loop():
                return self._reducing_loop(tree, scope)
            case Allocation(buffer, body):
                return self._allocation(buffer, body, scope)
            case Instance(statement, _) if statement in self.barriers:
                return self._barrier(statement)
            case Instance():
                return self._instance(tree, scope)
            case _:
                assert_never(tree)

    def _barrier(self, name: str) -> list[str]:
        barrier = self.dialect.barrier.format(number=self.barriers.index(name))
        if not self.copied_ahead or self.dialect.arrived is None:
            return [barrier]
        return [self.dialect.arrived.format(pending=self._pending.get(name, 0)), barrier]

    def next_exchange(self) -> int:
        """The number of one more place where lanes exchange values, behind those of the barriers."""
        self._exchanges += 1
        return len(self.barriers) + self._exchanges - 1

    def _allocation(self, buffer: Buffer, body: LoopTree, scope: Scope) -> list[str]:
        if buffer.shared:
            return self._shared(buffer, body, scope)
        regions, scratch = len(self.regions), self.scratch_bytes
        if buffer.name not in self.pieces:
            try:
                printer = RegisterPrinter(self, buffer, self._names.tensors[buffer.name], self.vector_bytes)
                return braced("", printer.lines(body, scope))
            except NotVectorsError:
                del self.regions[regions:]
                self.scratch_bytes = scratch
        declaration, inside = self._declaration(buffer, scope)
        return braced("", [*declaration, *self.tree(body, inside)])

    def _shared(self, buffer: Buffer, body: LoopTree, scope: Scope) -> list[str]:
        """Storage that the threads of a block share, beside all that they share in this kernel.

        Proofs know buffers by their names: two of them must not have bytes in common, even one after the other.
        """
        name, type = self._names.tensors[buffer.name], self.dialect.storage[buffer.layout.type]
        begin = self.shared_places.setdefault(name, self.shared_bytes)
        if begin == self.shared_bytes:
            self.shared_bytes += aligned(max(buffer.layout.span, 1) * buffer.layout.type.itemsize)
        type = f"{self.dialect.shared_memory}{type}"
        declaration = f"{type} *{name} = ({type} *)({self.dialect.shared} + {begin});"
        return braced("", [declaration, *self.tree(body, scope)])

    def _declaration(self, buffer: Buffer, scope: Scope) -> tuple[list[str], Scope]:
        """Storage for a buffer, aligned for the widest vectors, and the scope in which it is taken.

        The target of a reduction is a plain array, which the compiler takes apart into registers.  It does so only
        where it knows that nothing else reaches the array, so other buffers are behind restricted pointers.  What a
        small stack may not hold lies in the thread's scratch memory.
        """
        name, type = self._names.tensors[buffer.name], self.dialect.storage[buffer.layout.type]
        size = aligned(max(buffer.layout.span, 1) * buffer.layout.type.itemsize)
        if scope.launch is None and scope.stack + size > _STACK_BYTES:
            inside = replace(scope, scratch=scope.scratch + size)
            self.scratch_bytes = max(self.scratch_bytes, inside.scratch)
            begin = f"({type} *)({SCRATCH.name} + {scope.scratch})"
            return [f"{type} *{self.dialect.restrict} {name} = {begin};"], inside
        inside = replace(scope, stack=scope.stack + size)
        self.private_bytes = max(self.private_bytes, inside.stack)
        # The last vector of a row is loaded whole where that is in one line of the cache.
        aligning = f"__attribute__((aligned({ALIGNMENT})))"
        array = f"{name}[{size // buffer.layout.type.itemsize}] {aligning}"
        if any(body.target == buffer.name and body.reduction is not None for body in self.bodies.values()):
            return [f"{type} {array};", *self._poison(name)], inside
        declared = [f"{type} storage_{array};", *self._poison(f"storage_{name}")]
        return [*declared, f"{type} *{self.dialect.restrict} {name} = storage_{name};"], inside

    def _poison(self, array: str) -> list[str]:
        """Fills an array with poison where the dialect checks for reads before the first write."""
        return [f"__builtin_memset({array}, 0xff, sizeof {array});"] if self.dialect.watches else []

    def _child(self, child: LoopTree, scope: Scope, alone: bool) -> list[str]:
        lines = self.tree(child, scope)
        return braced("", lines) if isinstance(child, Instance) and not alone else lines

    # --- what register tiles ask

    @property
    def index_type(self) -> str:
        """The type of loop iterators and offsets."""
        return self.dialect.index

    def storage(self, type: ScalarType) -> str:
        """The type of an element in memory."""
        return self.dialect.storage[type]

    def pointer(self, tensor: str) -> str:
        """The variable that points to a tensor."""
        return self._names.tensors[tensor]

    def is_promoted(self, tensor: str) -> bool:
        """Whether it is a buffer that an allocation brings."""
        return tensor in self._promoted

    # --- loops

    def _reducing_loop(self, loop: Loop, scope: Scope) -> list[str]:
        """The loop, around which local variables keep what it reduces into, where they may."""
        found = None
        if scope.accumulation is None:
            totals = any(total.buffer is None for total in loop.totals)
            # Lanes are pragmas of one reduction only.
            several = self.dialect.vector is None or totals
            found = accumulation(loop, self.bodies, scope.ranges, several=several, always=totals)
        return self._loop(loop, scope) if found is None else self._accumulate(loop, found, scope)

    def _loop(self, loop: Loop, scope: Scope) -> list[str]:
        inner = scope.inside(loop)
        if loop.kind is LoopKind.REDUCTION:
            inner = replace(inner, lane=lane_of(loop))
        own = [self._array_totals(total) for total in loop.totals if total.buffer is not None]
        inner = replace(inner, totals={**scope.totals, **{totals.total.statement: totals for totals in own}})
        lines = [*self.tree(loop.body, inner), *folds_of_variables(self, loop, scope)]
        for fold in loop.folds:
            if fold.statement in inner.totals:
                lines += inner.totals[fold.statement].fold(fold)
        lines = self.loop(loop, scope, lines)
        for totals in own:
            lines = totals.around(loop, lines)
        return lines

    def _array_totals(self, total: Total) -> ArrayTotals:
        assert total.buffer is not None
        names = TotalNames(self._names.tensors[total.buffer])
        return ArrayTotals(self, total, names, self.layouts[total.buffer].span)

    def loop(self, loop: Loop, scope: Scope, body: list[str]) -> list[str]:
        """A loop around lines that were printed in ``scope.inside(loop)``."""
        inside = scope.inside(loop)
        name = inside.variables[loop.iterator]
        lower, end = self.index(loop.lower, scope), self.index(after(loop.upper), scope)
        require_fit(
            IndexOperation(IndexOperator.ADD, (loop.upper, IndexLiteral(loop.step))), scope.ranges, self.dialect
        )
        asked = [line for request in loop.requests for line in self._requested(request, inside)]
        lines, pragmas = [*asked, *body], loop_pragmas(self, loop, scope, body)
        if self.dialect.rotated_loops and always_runs(loop, scope.ranges) and self._waits(loop):
            *lines, last = braced("do", [*lines, f"{name} += {loop.step};"])
            declared = f"{self.dialect.index} {name} = {lower};"
            return braced("", [declared, *pragmas, *lines, f"{last} while ({name} < {end});"])
        header = f"for ({self.dialect.index} {name} = {lower}; {name} < {end}; {name} += {loop.step})"
        return [*pragmas, *braced(header, lines)]

    def _waits(self, loop: Loop) -> bool:
        """Whether there are barriers in the loop."""
        return any(instance.statement in self.barriers for instance, _ in loop_paths(loop, ()))

    def _requested(self, request: Request, scope: Scope) -> list[str]:
        template = self.dialect.prefetch_to_store if request.stored else self.dialect.prefetch_later
        if template is None:
            return []
        size = Fragment(str(self.layouts[request.tensor].type.itemsize))
        begin = infix("*", index_fragment(request.offset, scope.variables, self.dialect), size)
        one = request.lines == 1
        place = begin if one else infix("+", begin, infix("*", Fragment(str(LINE_BYTES)), Fragment(_LINE)))
        asked = template.format(tensor=self._names.tensors[request.tensor], bytes=place)
        if one:
            return [asked]
        header = f"for ({self.dialect.index} {_LINE} = 0; {_LINE} < {request.lines}; {_LINE} += 1)"
        return braced(header, [asked])

    def _parallel_loop(self, loop: Loop, scope: Scope) -> list[str]:
        inner = replace(scope.inside(loop), parallel=True)
        name = inner.variables[loop.iterator]
        index = self.dialect.index
        body = self.tree(loop.body, inner)
        if self.dialect.scalar and changes_in_lanes("\n".join(body)):
            # The chunk of a thread must not decide which iterations are left over from whole vectors.
            body = [self.dialect.scalar, *body]
        if loop.step == 1:
            lower, end = self.index(loop.lower, scope), self.index(after(loop.upper), scope)
            lines = braced(f"for ({index} {name} = begin; {name} < end; {name} += 1)", body)
        else:
            iteration = IndexVariable(_ITERATION)
            first = IndexOperation(IndexOperator.MULTIPLY, (iteration, IndexLiteral(loop.step)))
            value = IndexOperation(IndexOperator.ADD, (loop.lower, first))
            text = self.index(value, replace(scope, variables={**scope.variables, _ITERATION: _ITERATION}))
            lower, end = "0", self.index(trip_count(loop), scope)
            body = [f"const {index} {name} = {text};", *body]
            lines = braced(f"for ({index} {_ITERATION} = begin; {_ITERATION} < end; {_ITERATION} += 1)", body)
        lines = finished(lines, self.dialect)
        around = tuple(Parameter(index, "", loop_variable(depth), "") for depth in range(scope.depth))
        captured = tuple(p for p in mentioned((*self.parameters, *around), lines) if p != SCRATCH)
        label = f"tc_region_{len(self.regions)}"
        self.regions.append(region(label, captured, lines, self.dialect))
        condition = "" if always_runs(loop, scope.ranges) else f"if ({lower} < {end})"
        return braced(condition, region_call(label, captured, lower, end))

    # --- statements

    def _instance(self, instance: Instance, scope: Scope) -> list[str]:
        body = self.bodies[instance.statement]
        found = scope.accumulation
        site = self.site(instance, scope)
        heading = comment(body.name)
        type = self.layouts[body.target].type
        if found is None:
            target = self.expressions.location(body.target, body.subscripts, site)
            ahead = self._copied_ahead(body, target, site)
            return [heading, *(self._assign(target, body, type, site) if ahead is None else [ahead])]
        partial = next(p for p in found.partials if p.body is body)
        accumulator = Fragment(accumulator_name(partial, found))
        if found.lanes is not None:
            accumulator = element(str(accumulator), index_fragment(scope.lane, scope.variables, self.dialect))
        reached = [] if partial.always_runs else [f"{reached_name(partial, found)} = 1;"]
        return [heading, *self._assign(accumulator, body, computation_type(type), site), *reached]

    def _copied_ahead(self, body: StatementBody, target: Fragment, site: Site) -> str | None:
        """The statement that begins to copy an element; None where it is copied at once."""
        template, value = self.dialect.ahead, body.value
        if body.name not in self.copied_ahead or template is None or not isinstance(value, Read):
            return None
        if body.name in self._copied_for:  # an index is read and checked first, and waited for
            return None
        bytes = self.layouts[body.target].type.itemsize
        if bytes < _LEAST_AHEAD and not self.dialect.watches:
            return None
        source = self.expressions.location(value.tensor, value.subscripts, site)
        return template.format(to=prefix("&", target), source=prefix("&", source), bytes=bytes)

    def _accumulate(self, loop: Loop, found: Accumulation, scope: Scope) -> list[str]:
        before: list[str] = []
        behind: list[str] = []
        for partial in found.partials:
            body = partial.body
            site = self.site(partial.instance, scope)
            target = self.expressions.location(body.target, body.subscripts, site)
            declared, combined = self._accumulator_lines(loop, partial, found, target)
            before += declared
            behind += combined
        return braced("", [*before, *self._loop(loop, replace(scope, accumulation=found)), *behind])

    def _accumulator_lines(
        self, loop: Loop, partial: Partial, found: Accumulation, target: Fragment
    ) -> tuple[list[str], list[str]]:
        """What declares an accumulator, and what brings its value to the target."""
        expressions, layout = self.expressions, self.layouts[partial.body.target]
        name, type, lanes = accumulator_name(partial, found), self.dialect.values[layout.type], found.lanes
        own = (total for total in loop.totals if total.statement == partial.body.name and total.buffer is None)
        total = next(own, None)
        loaded = expressions.load(target, layout.type)
        if partial.always_runs and lanes is None and total is None:
            stored = f"{target} = {expressions.store(Fragment(name), layout.type)};"
            return [f"{type} {name} = {loaded};"], [stored]
        neutral = literal_fragment(neutral_element(partial.reduction, layout.type), self.dialect)
        declared, combined = self._variable(name, type, str(neutral), lanes), list[str]()
        result, computed = name, computation_type(layout.type)
        if total is not None:
            names = TotalNames(name)
            declared += names.counters(loop, total)
        if total is not None and total.wide:
            folded = any(folds_in(loop, partial.body.name))
            result, computed, lanes = names.total, ScalarType.FLOAT64, lanes_of_total(found, folded)
            declared += self._variable(result, self.dialect.values[computed], "0.0" if folded else None, lanes)
            if not folded:
                combined += total_of_variable(self, found, names)
            elif not is_all_folded(loop, total):
                combined += fold_variable(self, found, names)
        if lanes is not None:
            combined += self._lanes_combined(partial.reduction, result, computed, lanes)
            result = f"{result}[0]"
        value = expressions.combine(partial.reduction, loaded, Fragment(result), computed)
        stored = f"{target} = {expressions.store(value, layout.type)};"
        if partial.always_runs:
            return declared, [*combined, stored]
        reached = reached_name(partial, found)
        return [*declared, f"int32_t {reached} = 0;"], [*combined, *braced(f"if ({reached})", [stored])]

    def _variable(self, name: str, type: str, value: str | None, lanes: int | None) -> list[str]:
        """The declaration of a variable, or of one for every lane; ``value``: what it begins with."""
        if lanes is None:
            return [f"{type} {name} = {value};" if value is not None else f"{type} {name};"]
        declared = f"{type} {name}[{lanes}] __attribute__((aligned(64)));"
        if value is None:
            return [declared]
        vector = [self.dialect.vector] if self.dialect.vector else []
        return [declared, *vector, *braced(_EVERY_LANE.format(self.dialect.index, lanes), [f"{name}[lane] = {value};"])]

    def _lanes_combined(self, reduction: Reduction, name: str, type: ScalarType, lanes: int) -> list[str]:
        """What combines all lanes into the first one, halves of them at a time."""
        lines: list[str] = []
        for kept, count in halves(lanes):
            left, right = Fragment(f"{name}[lane]"), Fragment(f"{name}[lane + {kept}]")
            value = self.expressions.combine(reduction, left, right, type)
            lines += [self.dialect.vector] if self.dialect.vector and count > 1 else []
            lines += braced(_EVERY_LANE.format(self.dialect.index, count), [f"{left} = {value};"])
        return lines

    def site(self, instance: Instance, scope: Scope) -> Site:
        """Where an instance is printed."""
        body = self.bodies[instance.statement]
        arguments = dict(zip(body.iterators, instance.arguments, strict=True))
        name = self._copied_for.get(body.name, body.name)
        return Site(name, arguments, scope.variables, scope.offsets, scope.ranges)

    def _assign(self, target: Fragment, body: StatementBody, type: ScalarType, site: Site) -> list[str]:
        expressions = self.expressions
        if body.reduction is None:
            return [f"{target} = {expressions.stored(body.value, type, site)};"]
        value = expressions.value(body.value, site)
        operator = expressions.compound(body.reduction, type)
        if operator is not None:
            return [f"{target} {operator} {value};"]
        combined = expressions.combine(body.reduction, expressions.load(target, type), value, type)
        return [f"{target} = {expressions.store(combined, type)};"]

    def index(self, expression: IndexExpression, scope: Scope) -> str:
        """An index expression as text."""
        require_fit(expression, scope.ranges, self.dialect)
        return str(index_fragment(expression, scope.variables, self.dialect))


def neutral_element(reduction: Reduction, type: ScalarType) -> Literal:
    """The value that leaves the other operand of a reduction unchanged."""
    match reduction:
        case Reduction.ADD | Reduction.MULTIPLY:
            value: int | float = 0 if reduction is Reduction.ADD else 1
        case Reduction.MINIMUM:
            value = math.inf if type.is_floating else type.maximum
        case Reduction.MAXIMUM:
            value = -math.inf if type.is_floating else type.minimum
        case _:
            assert_never(reduction)
    return Literal(float(value) if type.is_floating else value, type)
