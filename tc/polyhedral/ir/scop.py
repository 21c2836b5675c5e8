"""From a specialization to its static control part: iteration domains, access relations, statement bodies.

A reducing statement with initialization becomes two: one that writes the neutral element and one that updates.
Reductions into sixteen-bit floats go through a float32 temporary, so that partial sums are never rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import islpy as isl

from tc.base.dots import Products
from tc.base.types import ScalarType, computation_type
from tc.language.isl.affine import Frame, access_relation, frame_of, guard_domain, iteration_domain, owned_elements
from tc.language.program.guards import GuardedRead, guarded_reads
from tc.language.program.program import Cast, Expression, Read, Reduction, Role, Statement, rebuild, walk
from tc.language.program.specialization import Layout, Sizes, Specialization, contiguous_strides
from tc.language.program.terms import float32_term
from tc.language.program.within import neutral_element
from tc.language.program.written_elements import is_scatter, over_elements
from tc.language.prove.written import writes_distinct_elements
from tc.polyhedral.ir.chained import Chain
from tc.polyhedral.ir.elements import at_elements, element_instances, element_names, steps_and_subscripts
from tc.polyhedral.ir.gathered import Gathered
from tc.polyhedral.ir.lazy_attribute import LazyAttribute
from tc.polyhedral.ir.loops import Buffer, StatementBody
from tc.polyhedral.ir.panels import Panels, in_panels


@dataclass(frozen=True)
class Rotation:
    """How an array holds the tiles of several iterations at a time: its first dimension counts slots for them.

    The iterations are those of the last member of the prefix, ``step`` apart, and take the ``slots`` in turn.
    """

    step: int
    slots: int


@dataclass(frozen=True)
class PromotedAccess:
    """An access that goes to a buffer instead of the tensor.

    ``location``: ``{ instance -> buffer[prefix, local] }``; the buffer is a new one for every value of the prefix, or,
    with a ``rotation``, a slot of one.  ``element``: ``{ instance -> tensor[element] }``, what it stands for.
    ``panels``: those of the buffer.
    """

    location: isl.Map
    element: isl.Map
    reads: bool
    writes: bool
    rotation: Rotation | None = None
    panels: Panels | None = None

    @LazyAttribute
    def buffer(self) -> str:
        """The name of the buffer."""
        return str(self.location.get_tuple_name(isl.dim_type.out))

    @property
    def depth(self) -> int:
        """Of the prefix."""
        return int(self.location.dim(isl.dim_type.out) - self.element.dim(isl.dim_type.out))

    @LazyAttribute
    def prefix(self) -> isl.Map:
        """``{ instance -> [prefix] }``."""
        width = self.element.dim(isl.dim_type.out)
        return self.location.project_out(isl.dim_type.out, self.depth, width).reset_tuple_id(isl.dim_type.out)

    @LazyAttribute
    def place(self) -> isl.Map:
        """``{ instance -> [subscripts] }``: where in the array that is allocated."""
        location = self.location.reset_tuple_id(isl.dim_type.out)
        if self.panels is not None:
            return in_panels(location.project_out(isl.dim_type.out, 0, self.depth), self.panels)
        if self.rotation is None:
            return location.project_out(isl.dim_type.out, 0, self.depth)
        subscripts = isl.MultiAff.identity_on_domain_space(location.get_space().range())
        step, slots = (isl.Val.int_from_si(location.get_ctx(), n) for n in (self.rotation.step, self.rotation.slots))
        slot = subscripts.get_at(self.depth - 1).scale_down_val(step).floor().mod_val(slots)
        subscripts = subscripts.drop_dims(isl.dim_type.out, 0, self.depth - 1).set_aff(0, slot)
        return location.apply_range(isl.Map.from_multi_aff(subscripts))

    @LazyAttribute
    def subscripts(self) -> tuple[isl.Map, ...]:
        """``{ instance -> [subscript] }`` of the place, dimension by dimension."""
        width = self.place.dim(isl.dim_type.out)
        return tuple(
            self.place.project_out(isl.dim_type.out, n + 1, width - n - 1).project_out(isl.dim_type.out, 0, n)
            for n in range(width)
        )


@dataclass(frozen=True)
class ScopStatement:
    """One statement: its instances, what each does, and what each touches.

    ``reads`` and ``writes`` map instances to elements of storages, in the sense of the program: promoted accesses are
    among them, and all that gathers may read.  ``accumulates``: instances only combine into their target with an
    associative and commutative operator, or set distinct elements that data choose, so they may run in any order, but
    not at once, unless they are atomic.  ``promoted``: accesses that go to buffers; the last iterators of ``body`` are
    their local subscripts, in order.  ``blocks``: those of the program (``tc.language.program.program.Statement``) that
    the statement stands in; its first dimensions count their steps.
    """

    name: str
    domain: isl.Set
    body: StatementBody
    reads: tuple[isl.Map, ...]
    writes: tuple[isl.Map, ...]
    accumulates: bool
    promoted: tuple[PromotedAccess, ...] = ()
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Promotion:
    """A box of a tensor that is kept in a buffer while the loops below some members run.

    ``elements``: ``{ buffer[prefix, local] -> tensor[element] }``.  ``loads`` and ``stores``: the copy statements by
    name, if there are any.  ``gathered``: in place of a tensor's, what a read finds by an index.  ``registers``: the
    buffer is a register tile.  ``panels``: what its array is cut into.
    """

    buffer: Buffer
    elements: isl.Map
    loads: str | None
    stores: str | None
    rotation: Rotation | None = None
    gathered: Gathered | None = None
    registers: bool = False
    panels: Panels | None = None

    @property
    def tensor(self) -> str:
        """The name of what elements are of, in relations."""
        return str(self.elements.get_tuple_name(isl.dim_type.out))


def reads_by_position(statement: ScopStatement, promotions: Iterable[Promotion]) -> Iterator[tuple[int, GuardedRead]]:
    """The reads of a statement's value, with the positions that they had before any were promoted."""
    inside = {p.buffer.name: p.gathered.inside for p in promotions if p.gathered is not None}
    position = 0
    for own in guarded_reads(statement.body.value):
        yield position, own
        position += 1 + inside.get(own.read.tensor, 0)


@dataclass(frozen=True)
class Await:
    """When copies that are begun at once, and end by themselves, have ended: at the latest at a barrier of a loop.

    ``first``: ``{ copy -> barrier }``, the next instances of that barrier, of all threads.  ``next``: from one instance
    of it to the next one of the same thread.  Every barrier closes a group of copies, and this one waits for all
    groups but the last ``pending`` ones, its own among them.
    """

    barrier: str
    first: isl.Map
    next: isl.Map
    pending: int


@dataclass(frozen=True)
class Scop:
    """Statements in program order, with the buffers that they touch.

    ``barriers``: named sets; at each point of one, all threads of a block wait for each other.  ``awaits``: by name,
    the copies that do not end where they are begun.  ``sizes``: those that are parameters of all sets and relations.
    ``between_kernels``: temporaries that no loop nest may both write and read.  ``shared_parts``: by statement, the
    iterator that counts the partial results which blocks have of a reduction.  ``row_threads``: by statement, how
    many threads of a block share its partial results, of reductions and of their totals.  ``products``: how factors
    may be rounded, by the options.  ``chain``: the products that share a kernel.
    """

    context: isl.Context
    statements: tuple[ScopStatement, ...]
    buffers: tuple[Buffer, ...]
    temporaries: tuple[Buffer, ...]
    promotions: tuple[Promotion, ...] = ()
    barriers: tuple[isl.Set, ...] = ()
    awaits: Mapping[str, Await] = field(default_factory=lambda: MappingProxyType({}))
    sizes: Sizes = ()
    between_kernels: frozenset[str] = frozenset()
    shared_parts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    row_threads: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    products: Products = Products.EXACT
    chain: Chain | None = None

    @property
    def barrier_names(self) -> frozenset[str]:
        """The names of the instances that are barriers."""
        return frozenset(str(barrier.get_tuple_name()) for barrier in self.barriers)

    @property
    def bodies(self) -> Mapping[str, StatementBody]:
        """What each statement does, by its name."""
        return {statement.name: statement.body for statement in self.statements}

    def statement(self, name: str) -> ScopStatement:
        """The statement with a name."""
        return next(s for s in self.statements if s.name == name)

    @property
    def domain(self) -> isl.UnionSet:
        """The iteration domains of all statements and barriers."""
        union = isl.UnionSet.empty(isl.Space.params_alloc(self.context, 0))
        for domain in (*(statement.domain for statement in self.statements), *self.barriers):
            union = union.union(isl.UnionSet.from_set(domain))
        return union


def build_scop(specialization: Specialization, context: isl.Context, wide: frozenset[str] = frozenset()) -> Scop:
    """The static control part of a specialized program; ``wide``: statements that accumulate in float64."""
    builder = _Builder(specialization, context, wide)
    for statement in specialization.program.statements:
        builder.add(statement)
    return builder.finish()


class _Builder:
    """Collects statements and the accumulators that they need."""

    def __init__(self, specialization: Specialization, context: isl.Context, wide: frozenset[str]) -> None:
        self.wide = wide
        self.program = specialization.program
        self.layouts = dict(specialization.layouts)
        self.shapes = {tensor.name: tensor.shape for tensor in specialization.program.tensors}
        self.storage = dict(specialization.signature.aliases)
        self.sizes = specialization.sizes
        self.context = context
        self.statements: list[ScopStatement] = []
        self.accumulators: list[str] = []

    def add(self, statement: Statement) -> None:
        layout = self.layouts[statement.target]
        type = self.accumulated_in(statement, layout.type)
        if type is layout.type:
            self.add_initialization(statement, layout.type)
            self.add_statement(statement)
            return
        accumulator = self.accumulator(statement.target, type)
        value = float32_term(statement.value) if layout.type.is_half else statement.value
        partial = replace(statement, target=accumulator, value=_cast(value, type))
        if statement.initialize:
            self.add_initialization(partial, type)
        else:
            loading = self.over_elements(statement, "load")
            element = Read(statement.target, loading.subscripts, layout.type)
            self.add_once(replace(loading, target=accumulator, value=_cast(element, type)))
        self.add_statement(partial)
        rounding = self.over_elements(statement, "round")
        total = Read(accumulator, rounding.subscripts, type)
        self.add_once(replace(rounding, value=_cast(total, layout.type)))

    def accumulated_in(self, statement: Statement, stored: ScalarType) -> ScalarType:
        """The type of a statement's accumulator: its target's, if it needs none of its own."""
        if statement.reduction is None:
            return stored
        return ScalarType.FLOAT64 if statement.name in self.wide else computation_type(stored)

    def accumulator(self, target: str, type: ScalarType) -> str:
        """A temporary of the same shape, under a name that no tensor has."""
        layout = self.layouts[target]
        number = len(self.accumulators)
        while f"sum{number}" in self.layouts:
            number += 1
        name = f"sum{number}"
        self.layouts[name] = Layout(type, layout.shape, contiguous_strides(layout.shape), layout.extents)
        self.shapes[name] = self.shapes[target]
        self.accumulators.append(name)
        return name

    def add_initialization(self, statement: Statement, type: ScalarType) -> None:
        if statement.reduction is not None and statement.initialize:
            neutral = neutral_element(statement.reduction, type)
            self.add_once(replace(self.over_elements(statement, "init"), value=neutral))

    def over_elements(self, statement: Statement, suffix: str) -> Statement:
        """The statement over its elements, not reducing: for loading, initializing and rounding."""
        once = over_elements(statement, self.shapes[statement.target])
        once = replace(once, name=f"{statement.name}_{suffix}", reduction=None, initialize=False, required=())
        return replace(once, owned=None, atomic=False)

    def add_once(self, statement: Statement) -> None:
        """Adds a statement that runs once for every element: over its iterators where no two instances share one."""
        frame = frame_of(statement, self.context, sizes=self.sizes)
        domain = self.domain(statement, frame)
        if writes_distinct_elements(statement):
            self.add_instances(statement, domain, frame)
            return
        write = self.relation(statement.target, steps_and_subscripts(statement), frame).intersect_domain(domain)
        if write.is_injective():
            self.add_instances(statement, domain, frame)
            return
        elements = replace(frame, iterators=element_names(statement))
        self.add_instances(at_elements(statement), element_instances(statement, write), elements)

    def add_statement(self, statement: Statement) -> None:
        frame = frame_of(statement, self.context, sizes=self.sizes)
        self.add_instances(statement, self.domain(statement, frame), frame)

    def domain(self, statement: Statement, frame: Frame) -> isl.Set:
        domain = iteration_domain(statement, frame)
        if domain is None:
            raise AssertionError(f"specialization let a non-affine domain through: {statement}")
        return domain

    def add_instances(self, statement: Statement, domain: isl.Set, frame: Frame) -> None:
        """Adds a statement that runs at all points of the domain, which is a set of the frame."""
        statement = self.stored(statement)
        write = self.relation(statement.target, statement.subscripts, frame).intersect_domain(domain)
        write = owned_elements(write, statement.owned, frame)
        reads = [self.read(guarded, domain, frame) for guarded in guarded_reads(statement.value)]
        for other in (*statement.subscripts, *statement.counts):
            reads += [self.read(guarded, domain, frame) for guarded in guarded_reads(other)]
        if statement.reduction is not None or is_scatter(statement):
            reads.append(write)  # what data do not choose stays as it is
        begun = 0 if statement.reduction is None else self.begun(statement, write)
        body = StatementBody(
            statement.name,
            frame.iterators,
            statement.target,
            statement.subscripts,
            statement.reduction,
            statement.value,
            most_terms(write, begun) if statement.reduction is Reduction.ADD else None,
            statement.owned,
            statement.counts,
            statement.atomic,
            begun,
        )
        # What data choose is distinct, where it is set: in any order, then.
        accumulates = statement.reduction is not None or is_scatter(statement)
        self.statements.append(
            ScopStatement(statement.name, domain, body, tuple(reads), (write,), accumulates, blocks=statement.blocks)
        )

    def begun(self, statement: Statement, write: isl.Map) -> int:
        """Of how many iterators, the first ones, each value begins a statement's reduction anew: steps of its blocks.

        They do where it initializes, or another statement sets all of its elements in each of them.
        """
        depth = len(statement.blocks)
        if depth == 0 or statement.initialize:
            return depth
        touched = _in_steps(write, depth).range()
        for other in map(self.stored, self.program.statements):
            if other.blocks == statement.blocks and other.target == statement.target and _sets(other):
                frame = frame_of(other, self.context, sizes=self.sizes)
                written = self.relation(other.target, other.subscripts, frame)
                given = _in_steps(written.intersect_domain(self.domain(other, frame)), depth)
                if touched.is_subset(given.range()):
                    return depth
        return 0

    def stored(self, statement: Statement) -> Statement:
        """The statement over storages: an output that shares the memory of an input is that input."""
        if not self.storage:
            return statement

        def rename(expression: Expression) -> Expression:
            renamed = rebuild(expression, rename)
            if isinstance(renamed, Read):
                return replace(renamed, tensor=self.storage.get(renamed.tensor, renamed.tensor))
            return renamed

        target = self.storage.get(statement.target, statement.target)
        subscripts = tuple(rename(s) for s in statement.subscripts)
        return replace(statement, target=target, subscripts=subscripts, value=rename(statement.value))

    def relation(self, tensor: str, subscripts: tuple[Expression, ...], frame: Frame) -> isl.Map:
        bounds = self.layouts[tensor].bounds
        return access_relation(tensor, subscripts, (*(None,) * (len(subscripts) - len(bounds)), *bounds), frame)

    def read(self, guarded: GuardedRead, domain: isl.Set, frame: Frame) -> isl.Map:
        relation = self.relation(guarded.read.tensor, guarded.read.subscripts, frame)
        return relation.intersect_domain(domain.intersect(guard_domain(guarded, frame)))

    def finish(self) -> Scop:
        written = {s.body.target for s in self.statements}
        buffers = [
            Buffer(t.name, self.layouts[t.name], t.name in written)
            for t in self.program.tensors
            if t.role is not Role.TEMPORARY
        ]
        names = [t.name for t in self.program.tensors if t.role is Role.TEMPORARY] + self.accumulators
        temporaries = [Buffer(name, self.layouts[name], writable=True) for name in names]
        return Scop(self.context, tuple(self.statements), tuple(buffers), tuple(temporaries), sizes=self.sizes)


def _sets(statement: Statement) -> bool:
    """Whether what an element held before does not come into what the statement writes there."""
    return (
        statement.reduction is None
        and not is_scatter(statement)
        and not any(isinstance(part, Read) and part.tensor == statement.target for part in walk(statement.value))
    )


def _in_steps(accesses: isl.Map, depth: int) -> isl.Map:
    """``{ instance -> [steps, element] }``."""
    steps = isl.Map.identity(accesses.get_space().domain().map_from_set()).reset_tuple_id(isl.dim_type.out)
    steps = steps.project_out(isl.dim_type.out, depth, steps.dim(isl.dim_type.out) - depth)
    return steps.flat_range_product(accesses.reset_tuple_id(isl.dim_type.out)).reset_tuple_id(isl.dim_type.out)


def most_terms(write: isl.Map, begun: int = 0) -> int | None:
    """The most instances that write one element; None where sizes that are open leave them without bound.

    Iterator by iterator, as many as the values that it has in them while those before it stand still.  ``begun``: of
    so many, the first ones, each value begins anew.
    """
    apart, count = write.apply_range(write.reverse()).deltas(), 1
    for position in range(begun):
        apart = apart.fix_val(isl.dim_type.set, position, isl.Val.zero(apart.get_ctx()))
    for position in range(write.dim(isl.dim_type.in_)):
        if apart.is_empty():
            return 0
        most = apart.dim_max_val(position)
        if not most.is_int():
            return None
        count *= int(most.to_python()) + 1
        apart = apart.fix_val(isl.dim_type.set, position, isl.Val.zero(apart.get_ctx()))
    return count


def _cast(value: Expression, type: ScalarType) -> Expression:
    return value if value.type is type else Cast(value, type)


def layouts_of(scop: Scop) -> dict[str, Layout]:
    """Layouts of all buffers by name."""
    promoted = (promotion.buffer for promotion in scop.promotions)
    return {buffer.name: buffer.layout for buffer in (*scop.buffers, *scop.temporaries, *promoted)}
