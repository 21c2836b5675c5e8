"""What printers are given: what holds in a whole kernel, what is around a node of its loops, and who prints trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Final, Protocol, TypeVar

from tc.base.frozen import frozen
from tc.base.remembered import Remembered
from tc.base.types import ScalarType
from tc.codegen.index.hoisted_reads import HoistedRead
from tc.codegen.index.indices import index_fragment, require_fit
from tc.codegen.index.kept_offsets import KeptOffsets
from tc.codegen.index.launch import Launch
from tc.codegen.index.launch_offsets import LaunchOffsets
from tc.codegen.index.pieces import Pieces
from tc.codegen.index.shared_offsets import SharedOffsets
from tc.codegen.printer.expressions import ExpressionPrinter, Site
from tc.codegen.printer.printed import NO_FACTS, Facts, Printed, side_by_side
from tc.codegen.printer.routines import Parameter
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, named
from tc.codegen.text.names import Names, loop_variable
from tc.language.program.program import Read
from tc.language.program.specialization import Layout
from tc.language.program.within import where_inside
from tc.polyhedral.analysis.accumulate import Accumulation
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.analysis.ranges import Ranges, iterator_range, ranges_where
from tc.polyhedral.ir.loops import (
    Copy,
    IndexExpression,
    IndexLiteral,
    Instance,
    Loop,
    LoopProgram,
    LoopTree,
    Scheduled,
    StatementBody,
    barriers,
    leaves,
)
from tc.polyhedral.ir.swizzle import Swizzle
from tc.polyhedral.ir.totals import Total

Part = TypeVar("Part")

_FIRST_LANE: Final = IndexLiteral(0)


class _Bodies:
    """The names and ranges in the bodies of loops: one object for all copies of a loop, remembered by its identity."""

    def __init__(self) -> None:
        self._found: Final[dict[object, Remembered[tuple[Mapping[str, Fragment], Ranges]]]] = {}

    def known(
        self, loop: Loop, variables: Mapping[str, Fragment], ranges: Ranges, depth: int
    ) -> tuple[Mapping[str, Fragment], Ranges]:
        """Those in the body, given those around it and how many loops these are."""

        def found() -> tuple[Mapping[str, Fragment], Ranges]:
            return (
                {**variables, loop.iterator: named(loop_variable(depth))},
                {**ranges, loop.iterator: iterator_range(loop, ranges)},
            )

        own = self._found.setdefault((loop.iterator, loop.lower, loop.upper, depth), Remembered())
        return own.of((variables, ranges), found)


@frozen
class Scope:
    """What is around a node of the loop tree.

    ``variables``: what loop iterators and symbolic sizes are in the text.  ``parallel``: this runs inside a
    parallel loop.  ``accumulation``: the accumulator that the instances below reduce into; ``lane``: the lane in which
    they do.  ``offsets``: what the lanes of a register tile share; ``fixed``: what all accesses of a kernel
    share.  ``launch``: the grid that runs this.  ``stack``,
    ``scratch``: bytes of the thread's stack and scratch memory that buffers around the node take.  ``totals``: those of
    buffers, by the statement that adds to them.  ``placed``: statements of which is known where they write.
    ``pieces``: elements that a thread has in arrays; ``hoisted``: in variables.  ``kept``: the offsets of copies that
    the loop over tiles keeps; ``copying``: the unrolled loops inside of it.
    ``functions``, ``exchanges``: how many of them were printed before.  ``buffers``: those that are declared around the
    node.
    """

    variables: Mapping[str, Fragment]
    ranges: Ranges = field(default_factory=dict)
    depth: int = 0
    parallel: bool = False
    accumulation: Accumulation | None = None
    lane: IndexExpression = _FIRST_LANE
    offsets: SharedOffsets | None = None
    fixed: LaunchOffsets | None = None
    launch: Launch | None = None
    stack: int = 0
    scratch: int = 0
    totals: Mapping[str, Total] = field(default_factory=dict)
    functions: int = 0
    exchanges: int = 0
    placed: frozenset[str] = frozenset()
    pieces: Pieces | None = None
    hoisted: tuple[HoistedRead, ...] = ()
    kept: KeptOffsets | None = None
    copying: tuple[Loop, ...] = ()
    buffers: tuple[Parameter, ...] = ()
    _bodies: _Bodies = field(default_factory=_Bodies, compare=False, repr=False)

    def inside(self, loop: Loop) -> Scope:
        """The scope of the loop's body."""
        variables, ranges = self._bodies.known(loop, self.variables, self.ranges, self.depth)
        return replace(self, variables=variables, ranges=ranges, depth=self.depth + 1)

    def where(self, condition: IndexExpression) -> Scope:
        """The scope of what runs where the condition holds."""
        ranges = ranges_where(condition, self.ranges)
        return self if ranges is self.ranges else replace(self, ranges=ranges)

    def behind(self, facts: Facts) -> Scope:
        """The scope of what is printed behind lines with these facts."""
        functions, exchanges = len(facts.functions), facts.exchanges
        if not functions and not exchanges:
            return self
        return replace(self, functions=self.functions + functions, exchanges=self.exchanges + exchanges)


def one_after_another(parts: Iterable[Part], scope: Scope, printing: Callable[[Part, Scope], Printed]) -> Printed:
    """All parts, each in the scope behind those before it."""
    found: list[Printed] = []
    facts = NO_FACTS
    for part in parts:
        found.append(printing(part, scope.behind(facts)))
        facts |= found[-1].facts
    return side_by_side(found)


@frozen
class Context:
    """What is the same everywhere in a kernel.

    ``parameters``: those that its functions may have.  ``vector_bytes``: of a vector register, 0 without;
    ``vector_registers``: how many there are.
    ``bodies``: by the name of the statement.  ``layouts``: by tensor.  ``promoted``: the buffers that allocations
    bring; ``shared``: those of them that threads of a block share, not swizzled; ``streamed``: those whose content goes
    to a result with non-temporal stores.  ``barriers``: in the order of their numbers.  ``scalars``: the buffers that
    are variables of a thread; ``swizzles``: of others, by name.
    """

    program: LoopProgram
    names: Names
    parameters: tuple[Parameter, ...]
    dialect: Dialect
    vector_bytes: int
    vector_registers: int
    expressions: ExpressionPrinter
    bodies: Mapping[str, StatementBody]
    layouts: Mapping[str, Layout]
    promoted: frozenset[str]
    shared: frozenset[str]
    streamed: frozenset[str]
    barriers: tuple[str, ...]
    scalars: frozenset[str]
    swizzles: Mapping[str, Swizzle]

    def storage(self, type: ScalarType) -> Fragment:
        """The type of an element in memory."""
        return named(self.dialect.storage[type])

    def pointer(self, tensor: str) -> Fragment:
        """The variable that points to a tensor."""
        return named(self.names.tensors[tensor])

    def index(self, expression: IndexExpression, scope: Scope) -> Fragment:
        """An index expression as text."""
        require_fit(expression, scope.ranges, self.dialect)
        return index_fragment(expression, scope.variables, self.dialect)

    def offset(self, form: LinearForm, scope: Scope) -> Fragment:
        """An offset as text."""
        shared = None if scope.fixed is None else scope.fixed.text(form, scope.variables, scope.ranges)
        return shared or self.index(form.expression(), scope)

    def body(self, instance: Instance) -> StatementBody:
        """What an instance does, without asking whether it is inside of ranges that it is known to be inside of."""
        body = self.bodies[instance.statement]
        if not instance.holds:
            return body
        return replace(body, value=where_inside(body.value, body.reduction, instance.holds))

    def site(self, instance: Scheduled, scope: Scope) -> Site:
        """Where an instance is printed."""
        body = self.bodies[instance.statement]
        arguments = dict(zip(body.iterators, instance.arguments, strict=True))
        name = instance.gathers_for or body.name if isinstance(instance, Copy) else body.name
        variables, ranges, hoisted = scope.variables, scope.ranges, scope.hoisted
        return Site(name, arguments, variables, scope.offsets, ranges, scope.fixed, scope.pieces, hoisted)


def context_of(
    program: LoopProgram,
    names: Names,
    parameters: tuple[Parameter, ...],
    dialect: Dialect,
    vector_bytes: int,
    vector_registers: int,
) -> Context:
    """The context of a program's kernel."""
    layouts = {buffer.name: buffer.layout for buffer in (*program.buffers, *program.temporaries, *program.promoted)}
    bodies = {body.name: body for body in program.bodies}
    # Of loops with pointers to elements of one iteration, compilers of processors make no lanes.
    scalars = frozenset(
        buffer.name for buffer in program.promoted if dialect.grids and not buffer.shared and buffer.layout.span == 1
    )
    swizzles = {buffer.name: buffer.swizzle for buffer in program.promoted if buffer.swizzle is not None}
    return Context(
        program=program,
        names=names,
        parameters=parameters,
        dialect=dialect,
        vector_bytes=vector_bytes,
        vector_registers=vector_registers,
        expressions=ExpressionPrinter(names, layouts, program.sizes, program.checked, dialect, scalars, swizzles),
        bodies=bodies,
        layouts=layouts,
        promoted=frozenset(buffer.name for buffer in program.promoted),
        shared=frozenset(own.name for own in program.promoted if own.shared and own.swizzle is None),
        streamed=frozenset(
            value.tensor
            for leaf in leaves(program.root)
            if isinstance(leaf, Instance) and leaf.nontemporal
            if isinstance(value := bodies[leaf.statement].value, Read)
        ),
        barriers=tuple(sorted(barriers(program.root))),
        scalars=scalars,
        swizzles=swizzles,
    )


class TreePrinter(Protocol):
    """Prints loop trees; printers of one kind of node are given it for the trees inside."""

    @property
    def context(self) -> Context:
        """That of the kernel."""
        ...

    def tree(self, tree: LoopTree, scope: Scope) -> Printed:
        """What runs a loop tree."""
        ...

    def loop(self, loop: Loop, scope: Scope, body: Printed) -> Printed:
        """A loop around what was printed in ``scope.inside(loop)``."""
        ...
