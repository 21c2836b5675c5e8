"""Prints the loops of a kernel: statements, loops with what they promise the compiler, parallel loops outlined."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from tc.codegen.accumulate import Accumulation, accumulation, target_iterators
from tc.codegen.dialect import Dialect
from tc.codegen.expressions import FAULTED, ExpressionPrinter
from tc.codegen.fragment import Fragment
from tc.codegen.functions import function_name
from tc.codegen.indices import after, index_fragment
from tc.codegen.literals import literal_fragment
from tc.codegen.names import Names, comment, loop_variable
from tc.codegen.numerics import changes_in_lanes
from tc.codegen.ranges import Ranges, always_runs, iterator_range, most_iterations
from tc.codegen.routines import Parameter, braced, mentioned, mentions, region, region_call, reporting_faults
from tc.language.program import IteratorReference, Literal, Reduction, walk
from tc.polyhedral.loops import (
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
    StatementBody,
)
from tc.types import ScalarType, computation_type

_ACCUMULATOR: Final = Fragment("accumulator")
_REACHED: Final = "reached"
_ITERATION: Final = "iteration"
_COMPOUND: Final = {Reduction.ADD: "+=", Reduction.MULTIPLY: "*="}
# A loop of unknown length is unrolled so often, and no loop more often than this.
_UNROLL_UNKNOWN: Final = 4
_UNROLL_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class Scope:
    """What is around a node of the loop tree.

    ``variables``: names of loop iterators and symbolic sizes in the text.  ``parallel``: this runs inside a
    parallel loop.  ``accumulation``: the accumulator that the instance below reduces into.
    """

    variables: Mapping[str, str]
    ranges: Ranges = field(default_factory=dict)
    depth: int = 0
    parallel: bool = False
    accumulation: Accumulation | None = None

    def inside(self, loop: Loop) -> Scope:
        """The scope of the loop's body."""
        return replace(
            self,
            variables={**self.variables, loop.iterator: loop_variable(self.depth)},
            ranges={**self.ranges, loop.iterator: iterator_range(loop, self.ranges)},
            depth=self.depth + 1,
        )


class KernelPrinter:
    """Prints one kernel; ``regions`` collects the outlined bodies of its parallel loops, inner parts first."""

    def __init__(self, program: LoopProgram, names: Names, parameters: tuple[Parameter, ...], dialect: Dialect) -> None:
        self._names = names
        self._dialect = dialect
        self._parameters = parameters
        self._bodies = {body.name: body for body in program.bodies}
        self._layouts = {
            buffer.name: buffer.layout for buffer in (*program.buffers, *program.temporaries, *program.promoted)
        }
        self.expressions = ExpressionPrinter(names, self._layouts, program.checked, dialect)
        self.regions: list[list[str]] = []

    def tree(self, tree: LoopTree, scope: Scope) -> list[str]:
        """The lines that run a loop tree."""
        match tree:
            case Block(children):
                return [line for child in children for line in self._child(child, scope, alone=len(children) == 1)]
            case Guard(condition, then, otherwise):
                lines = braced(f"if ({self._index(condition, scope)})", self.tree(then, scope))
                return lines if otherwise is None else [*lines, *braced("else", self.tree(otherwise, scope))]
            case Loop(kind=LoopKind.PARALLEL) if not scope.parallel:
                return self._parallel_loop(tree, scope)
            case Loop():
                found = None if scope.accumulation else accumulation(tree, self._bodies, scope.ranges)
                return self._loop(tree, scope) if found is None else self._accumulate(tree, found, scope)
            case Allocation(buffer, body):
                return braced("", [*self._declaration(buffer), *self.tree(body, scope)])
            case Instance():
                return self._instance(tree, scope)
            case _:
                assert_never(tree)

    def _declaration(self, buffer: Buffer) -> list[str]:
        """Storage for a buffer, aligned for the widest vectors.

        The target of a reduction is a plain array, which the compiler takes apart into registers.  It does so only
        where it knows that nothing else reaches the array, so other buffers are behind restricted pointers.
        """
        name, type = self._names.tensors[buffer.name], self._dialect.storage[buffer.layout.type]
        array = f"{name}[{max(buffer.layout.span, 1)}] __attribute__((aligned(64)))"
        if any(body.target == buffer.name and body.reduction is not None for body in self._bodies.values()):
            return [f"{type} {array};"]
        return [f"{type} storage_{array};", f"{type} *restrict {name} = storage_{name};"]

    def _child(self, child: LoopTree, scope: Scope, alone: bool) -> list[str]:
        lines = self.tree(child, scope)
        declares = isinstance(child, Instance) or (isinstance(child, Loop) and child.kind is LoopKind.REDUCTION)
        return braced("", lines) if declares and not alone else lines

    # --- loops

    def _loop(self, loop: Loop, scope: Scope) -> list[str]:
        inner = scope.inside(loop)
        name = inner.variables[loop.iterator]
        lower, end = self._index(loop.lower, scope), self._index(after(loop.upper), scope)
        header = f"for ({self._dialect.index} {name} = {lower}; {name} < {end}; {name} += {loop.step})"
        body = self.tree(loop.body, inner)
        return [*self._promises(loop, scope, body), *braced(header, body)]

    def _promises(self, loop: Loop, scope: Scope, body: list[str]) -> list[str]:
        """The lines before a loop that tell the compiler what it may do with the iterations of its body."""
        dialect = self._dialect
        match loop.kind:
            case LoopKind.VECTOR:
                # Lanes must not share a variable; the compiler finds by itself that only faults do.
                return [dialect.vector] if dialect.vector and not mentions(body, FAULTED) else []
            case LoopKind.REDUCTION:
                return self._reduction_promises(loop, scope.accumulation, body)
            case LoopKind.UNROLLED:
                count = most_iterations(loop, scope.ranges)
                count = min(count, _UNROLL_MOST) if count is not None else _UNROLL_UNKNOWN
                return [dialect.unroll.format(count=count)] if dialect.unroll and count > 1 else []
            case LoopKind.SEQUENTIAL | LoopKind.PARALLEL:
                return []
            case _:
                assert_never(loop.kind)

    def _reduction_promises(self, loop: Loop, found: Accumulation | None, body: list[str]) -> list[str]:
        vector, clause = self._dialect.vector, self._dialect.vector_reduction
        if found is None or vector is None or clause is None or _holds_reduction_loop(loop.body):
            return []
        type = computation_type(self._layouts[found.body.target].type)
        if type is ScalarType.BOOL:
            return []
        operator: str = found.reduction.value
        if type.is_floating and found.reduction in (Reduction.MINIMUM, Reduction.MAXIMUM):
            operator = function_name(operator, type)
        partial = [(operator, str(_ACCUMULATOR)), ("|", _REACHED), ("max", FAULTED)]
        clauses = [clause.format(operator=symbol, variable=name) for symbol, name in partial if mentions(body, name)]
        return [" ".join((vector, *clauses))]

    def _parallel_loop(self, loop: Loop, scope: Scope) -> list[str]:
        inner = replace(scope.inside(loop), parallel=True)
        name = inner.variables[loop.iterator]
        index = self._dialect.index
        body = self.tree(loop.body, inner)
        if self._dialect.scalar and changes_in_lanes("\n".join(body)):
            # The chunk of a thread must not decide which iterations are left over from whole vectors.
            body = [self._dialect.scalar, *body]
        if loop.step == 1:
            lower, end = self._index(loop.lower, scope), self._index(after(loop.upper), scope)
            lines = braced(f"for ({index} {name} = begin; {name} < end; {name} += 1)", body)
        else:
            iteration = IndexVariable(_ITERATION)
            first = IndexOperation(IndexOperator.MULTIPLY, (iteration, IndexLiteral(loop.step)))
            value = IndexOperation(IndexOperator.ADD, (loop.lower, first))
            text = self._index(value, replace(scope, variables={**scope.variables, _ITERATION: _ITERATION}))
            lower, end = "0", self._index(_trip_count(loop), scope)
            body = [f"const {index} {name} = {text};", *body]
            lines = braced(f"for ({index} {_ITERATION} = begin; {_ITERATION} < end; {_ITERATION} += 1)", body)
        lines = reporting_faults(lines)
        around = tuple(Parameter(index, "", loop_variable(depth), "") for depth in range(scope.depth))
        captured = mentioned((*self._parameters, *around), lines)
        label = f"tc_region_{len(self.regions)}"
        self.regions.append(region(label, captured, lines, self._dialect))
        condition = "" if always_runs(loop, scope.ranges) else f"if ({lower} < {end})"
        return braced(condition, region_call(label, captured, lower, end))

    # --- statements

    def _instance(self, instance: Instance, scope: Scope) -> list[str]:
        body = self._bodies[instance.statement]
        found = scope.accumulation
        located = target_iterators(body) if found is not None else set()
        used = {
            e.name for part in (body.value, *body.subscripts) for e in walk(part) if isinstance(e, IteratorReference)
        }
        bindings = [comment(body.name), *self._bindings(instance, body, used - located, scope)]
        type = self._layouts[body.target].type
        if found is None:
            target = self.expressions.location(body.target, body.subscripts, body.name)
            return [*bindings, *self._assign(target, body, type)]
        assignment = self._assign(_ACCUMULATOR, body, computation_type(type))
        return [*bindings, *assignment, *([] if found.always_runs else [f"{_REACHED} = 1;"])]

    def _accumulate(self, loop: Loop, found: Accumulation, scope: Scope) -> list[str]:
        body, expressions = found.body, self.expressions
        layout = self._layouts[body.target]
        value_type = self._dialect.values[layout.type]
        bindings = self._bindings(found.instance, body, target_iterators(body), scope)
        target = expressions.location(body.target, body.subscripts, body.name)
        loaded = expressions.load(target, layout.type)
        loops = self._loop(loop, replace(scope, accumulation=found))
        if found.always_runs:
            before = [f"{value_type} {_ACCUMULATOR} = {loaded};"]
            after_loops = [f"{target} = {expressions.store(_ACCUMULATOR, layout.type)};"]
        else:
            neutral = literal_fragment(neutral_element(found.reduction, layout.type), self._dialect)
            before = [f"{value_type} {_ACCUMULATOR} = {neutral};", f"int32_t {_REACHED} = 0;"]
            combined = expressions.combine(found.reduction, loaded, _ACCUMULATOR, layout.type)
            after_loops = braced(f"if ({_REACHED})", [f"{target} = {expressions.store(combined, layout.type)};"])
        return [*bindings, *before, *loops, *after_loops]

    def _bindings(self, instance: Instance, body: StatementBody, wanted: set[str], scope: Scope) -> list[str]:
        """The statement's iterators, as far as they are wanted, bound to the instance's arguments."""
        return [
            f"const {self._dialect.index} {self._names.iterators[name]} = {self._index(argument, scope)};"
            for name, argument in zip(body.iterators, instance.arguments, strict=True)
            if name in wanted
        ]

    def _assign(self, target: Fragment, body: StatementBody, type: ScalarType) -> list[str]:
        expressions = self.expressions
        if body.reduction is None:
            return [f"{target} = {expressions.stored(body.value, type, body.name)};"]
        value = expressions.value(body.value, body.name)
        operator = _COMPOUND.get(body.reduction)
        if operator is not None and not type.is_half and (type.is_floating or type.itemsize >= 4):
            return [f"{target} {operator} {value};"]
        combined = expressions.combine(body.reduction, expressions.load(target, type), value, type)
        return [f"{target} = {expressions.store(combined, type)};"]

    def _index(self, expression: IndexExpression, scope: Scope) -> str:
        return str(index_fragment(expression, scope.variables, self._dialect))


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


def _trip_count(loop: Loop) -> IndexExpression:
    """The number of iterations, where there are any; at most 0 otherwise."""
    distance = IndexOperation(IndexOperator.SUBTRACT, (loop.upper, loop.lower))
    quotient = IndexOperation(IndexOperator.FLOOR_DIVIDE, (distance, IndexLiteral(loop.step)))
    return IndexOperation(IndexOperator.ADD, (quotient, IndexLiteral(1)))


def _holds_reduction_loop(tree: LoopTree) -> bool:
    match tree:
        case Allocation(_, body):
            return _holds_reduction_loop(body)
        case Loop(kind=kind, body=body):
            return kind is LoopKind.REDUCTION or _holds_reduction_loop(body)
        case Guard(_, then, otherwise):
            return _holds_reduction_loop(then) or (otherwise is not None and _holds_reduction_loop(otherwise))
        case Block(children):
            return any(_holds_reduction_loop(child) for child in children)
        case Instance():
            return False
        case _:
            assert_never(tree)
