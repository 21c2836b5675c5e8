"""Scans: reductions whose terms grow from element to element are computed each from the one before.

``y(n,i) +=! x(n,j) where j in 0:i+1`` becomes, for every ``n``, a block of a carry: ``c(n) = 0``, and for each ``i`` in
order ``c(n) += x(n,i)`` and ``y(n,i) = c(n)``: as many steps as there are elements, where there were as many as pairs.
What results is a program of the same language, which every later pass and proof treats like any other; that it
means the same is proven by ``tc.polyhedral.proof.verify_scans``.

Where an element adds several terms, these are added up first, into a tensor of their own, which is then scanned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.base.types import ScalarType, computation_type
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name
from tc.language.isl.affine import access_relation, frame_of
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Cast,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Reduction,
    Role,
    Statement,
    Tensor,
    in_terms_of,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.language.program.terms import float32_term
from tc.language.program.within import neutral_element
from tc.language.program.written_elements import written_iterators
from tc.polyhedral.ir.scans import Blocks, Grown, Scan, StepSums
from tc.polyhedral.schedule.growing_points import Points, Walk, from_zero
from tc.polyhedral.schedule.growth import Growth, growth_of, without_mask
from tc.polyhedral.schedule.step_sums import sum_steps


@frozen
class Scanning:
    """Which scans are made in blocks: those of less than ``rows`` elements side by side, with enough steps for them.

    ``steps``: of a block.  ``least``: in how many steps a scan is not worth it.
    """

    rows: int
    steps: int
    least: int

    def length(self, steps: int) -> int:
        """Of blocks of so many steps in all: if possible, there is a whole number of them."""
        near = range(self.steps // 2 + 1, 2 * self.steps)
        return min((n for n in near if steps % n == 0), key=lambda n: abs(n - self.steps), default=self.steps)

    def divides(self, rows: int, steps: int | None) -> bool:
        """Whether a scan of so many rows, with so many steps, is made in blocks."""
        return steps is not None and rows < self.rows and steps >= self.least


def scan_reductions(
    specialization: Specialization, context: isl.Context, scanning: Scanning | None = None
) -> tuple[Specialization, tuple[Grown, ...]]:
    """The program with a scan in the place of every reduction whose terms grow.

    ``scanning``: which of them are in blocks.  What is carried from block to block grows, too, and may be scanned next.
    """
    scanner = _Scanner(specialization, context, scanning)
    statements = tuple(new for old in specialization.program.statements for new in scanner.scanned(old))
    program = replace(specialization.program, tensors=tuple(scanner.tensors), statements=statements)
    return replace(specialization, program=program, layouts=scanner.layouts), tuple(scanner.scans)


def carried_in(reduction: Reduction, stored: ScalarType) -> ScalarType:
    """The type of a carry: sums of float32 and of halves, which may be long, are float64."""
    computed = computation_type(stored)
    return ScalarType.FLOAT64 if (reduction, computed) == (Reduction.ADD, ScalarType.FLOAT32) else computed


def combined(reduction: Reduction, left: Expression, right: Expression) -> Expression:
    """What the reduction makes of two values of one type; booleans add up to ``or``, and multiply to ``and``."""
    type = right.type
    match reduction:
        case Reduction.ADD:
            return Binary(BinaryOperator.OR if type is ScalarType.BOOL else BinaryOperator.ADD, left, right, type)
        case Reduction.MULTIPLY:
            return Binary(BinaryOperator.AND if type is ScalarType.BOOL else BinaryOperator.MULTIPLY, left, right, type)
        case Reduction.MINIMUM if type is ScalarType.BOOL:
            return Binary(BinaryOperator.AND, left, right, type)
        case Reduction.MAXIMUM if type is ScalarType.BOOL:
            return Binary(BinaryOperator.OR, left, right, type)
        case Reduction.MINIMUM | Reduction.MAXIMUM:
            return Call(reduction.value, (left, right), type)
        case _:
            assert_never(reduction)


class _Scanner:
    """Collects the carries, and what became of which statement."""

    def __init__(self, specialization: Specialization, context: isl.Context, scanning: Scanning | None) -> None:
        self.scanning = scanning
        self.program: Program = specialization.program
        self.sizes = specialization.sizes
        self.context = context
        self.tensors = list(self.program.tensors)
        self.layouts = dict(specialization.layouts)
        self.scans: list[Grown] = []
        self.shared = {output for output, _ in specialization.signature.aliases}
        self.taken = {statement.name for statement in self.program.statements}
        self.blocks = max((block for s in self.program.statements for block in s.blocks), default=-1)

    def scanned(self, statement: Statement) -> tuple[Statement, ...]:
        """The statements that stand for one.

        Results that take the memory of an argument are written when all of it has been read, not step by step.
        """
        if statement.target in self.shared:
            return (statement,)
        unmasked = without_mask(statement)
        for changed in (statement,) if unmasked is statement else (statement, unmasked):
            growth = growth_of(changed, self.sizes, self.context)
            if growth is not None and self.writes_distinct_elements(changed, growth):
                return self.going_on(changed, growth) or (statement,)
        return (statement,)

    def going_on(self, statement: Statement, growth: Growth) -> tuple[Statement, ...] | None:
        """The statements that stand for one whose terms grow; None where they cannot be written down."""
        points = Points(statement, growth, self.sizes)
        regular, first = points.steps()
        if not regular.is_single_valued():
            return self.summed(statement, points)
        values = points.values(regular)
        walk = points.walk()
        if values is None or walk is None or not points.is_bounded(first):
            return None
        rows = math.prod(points.extent(loop) for loop in points.loops(points.kept))
        if first is None and self.scanning is not None and self.scanning.divides(rows, walk.steps):
            taken = {iterator.name for iterator in statement.iterators}
            walk = walk.in_blocks(self.scanning.length(walk.steps or 0), taken)
        return self.carried(statement, points, _Step(regular.domain(), first, values, walk))

    def summed(self, statement: Statement, points: Points) -> tuple[Statement, ...] | None:
        """The statements that stand for one in whose steps several terms are added; what grows then is scanned next."""
        shape = tuple(map(points.extent, points.loops(points.written)))
        sums = self.new_tensor(statement, "steps", shape)
        found = sum_steps(statement, points, sums, _term(statement, sums.type))
        if found is None:
            return None
        self.add_tensor(sums, shape)
        each = replace(found.each, name=self.named(statement, "each"))
        total = replace(found.total, name=self.named(statement, "total"))
        iterator = points.growth.iterator
        self.scans.append(StepSums(statement.name, iterator, found.values, sums.name, each.name, total.name))
        return each, total

    def writes_distinct_elements(self, statement: Statement, growth: Growth) -> bool:
        written = replace(statement, iterators=written_iterators(statement))
        frame = frame_of(written, self.context, sizes=self.sizes)
        extents = self.layouts[statement.target].bounds
        relation = access_relation(statement.target, statement.subscripts, extents, frame)
        return bool(relation.intersect_domain(growth.elements.set_tuple_name(statement.name)).is_injective())

    def carried(self, statement: Statement, points: Points, step: _Step) -> tuple[Statement, ...]:
        """A carry, cleared or begun with what earlier blocks have, and the steps that add to it and store it."""
        assert statement.reduction is not None
        name, walk, kept = points.growth.iterator, step.walk, points.loops(points.kept)
        rest, shape = (*kept, *walk.blocks), (*map(points.extent, kept), *map(_count, walk.blocks))
        carry = self.tensor(statement, "carry", shape)
        base = replace(
            statement,
            iterators=rest,
            conditions=points.conditions(points.outside, points.kept),
            target=carry.name,
            subscripts=tuple(map(from_zero, rest)),
            initialize=False,
            required=(),
            origin=DerivedOrigin("a scan", statement.origin),
        )
        neutral = neutral_element(statement.reduction, carry.type)
        clear = replace(base, name=self.named(statement, "clear"), reduction=None, value=neutral)
        term = _term(statement, carry.type)
        begun = self.begun(base, points, step.first, term)
        each = replace(
            base,
            iterators=(*rest, walk.loop),
            conditions=(*(walk.at(c, name) for c in points.conditions(step.elements, points.written)), *walk.bound),
            value=walk.at(in_terms_of(term, step.values), name),
        )
        self.blocks += 1
        depth = len(statement.blocks)
        inside = (*rest[:depth], walk.loop, *rest[depth:])
        add = replace(each, iterators=inside, blocks=(*statement.blocks, self.blocks))
        store = self.store(statement, points, walk, add, carry.type)
        scan = Scan(
            statement.name,
            name,
            walk.place,
            {reduced: walk.at(value, name) for reduced, value in step.values.items()},
            carry.name,
            clear.name,
            None if begun is None else begun.name,
            add.name,
            store.name,
            points.growth.backward,
        )
        if not walk.blocks:
            self.scans.append(scan)
            return (clear, add, store) if begun is None else (clear, begun, add, store)
        partials = self.tensor(statement, "parts", shape)
        each = replace(each, name=self.named(statement, "each"), target=partials.name)
        before = self.before(base, partials)
        self.scans.append(replace(scan, blocks=Blocks(partials.name, each.name, before.name)))
        return (replace(clear, target=partials.name), each, before, add, store)

    def store(self, statement: Statement, points: Points, walk: Walk, add: Statement, carried: ScalarType) -> Statement:
        """What becomes of the carry in every step of the block in which ``add`` adds to it."""
        assert statement.reduction is not None
        name, type = points.growth.iterator, self.layouts[statement.target].type
        value: Expression = Read(add.target, add.subscripts, carried)
        subscripts = tuple(walk.at(subscript, name) for subscript in statement.subscripts)
        if not statement.initialize:
            old = Read(statement.target, subscripts, type)
            value = combined(statement.reduction, old if carried is type else Cast(old, carried), value)
        own = points.conditions(points.growth.elements, points.written)
        return replace(
            add,
            name=self.named(statement, "store"),
            conditions=(*(walk.at(condition, name) for condition in own), *walk.bound),
            target=statement.target,
            subscripts=subscripts,
            reduction=None,
            value=value if carried is type else Cast(value, type),
        )

    def before(self, base: Statement, partials: Tensor) -> Statement:
        """What all blocks before one have: a triangular reduction of what each has."""
        block = base.iterators[-1]
        earlier = fresh_name(f"{block.name}_before", {loop.name for loop in base.iterators})
        subscripts = (*base.subscripts[:-1], IteratorReference(earlier))
        return replace(
            base,
            name=self.named(base, "before"),
            iterators=(*base.iterators, replace(block, name=earlier, end=IteratorReference(block.name))),
            initialize=True,
            value=Read(partials.name, subscripts, partials.type),
        )

    def begun(self, base: Statement, points: Points, first: isl.Set | None, term: Expression) -> Statement | None:
        """What the first elements have, added to their carries; None where that is one step like the others."""
        if first is None:
            return None
        names = (*points.kept, *points.reduced)
        loops = points.loops_of(first, names)
        return replace(
            base,
            name=self.named(base, "first"),
            iterators=loops,
            conditions=points.conditions_in(first, names, loops),
            value=term,
        )

    def named(self, statement: Statement, suffix: str) -> str:
        """A new name for a statement."""
        name = fresh_name(f"{statement.name}_{suffix}", self.taken)
        self.taken.add(name)
        return name

    def tensor(self, statement: Statement, kind: str, shape: tuple[int, ...]) -> Tensor:
        """A new temporary for carries, or for what blocks have: one for every value of the other iterators."""
        tensor = self.new_tensor(statement, kind, shape)
        self.add_tensor(tensor, shape)
        return tensor

    def new_tensor(self, statement: Statement, kind: str, shape: tuple[int, ...]) -> Tensor:
        """A temporary in which terms of the statement are combined, which the program has not yet."""
        assert statement.reduction is not None
        type = carried_in(statement.reduction, self.layouts[statement.target].type)
        name = fresh_name(f"{statement.target}_{kind}", {tensor.name for tensor in self.tensors})
        extents = tuple(Literal(extent, INDEX_TYPE) for extent in shape)
        return Tensor(name, type, extents, Role.TEMPORARY, DerivedOrigin("a scan", statement.origin))

    def add_tensor(self, tensor: Tensor, shape: tuple[int, ...]) -> None:
        """From now on, the program has it."""
        self.tensors.append(tensor)
        self.layouts[tensor.name] = Layout(tensor.type, shape, contiguous_strides(shape))


@dataclass(frozen=True)
class _Step:
    """What one step of a scan adds: at which ``elements``, and the ``values`` of the reduced iterators there.

    ``first``: ``{ [others, reduced] }``, what the first elements have beside; None where that is nothing.
    """

    elements: isl.Set
    first: isl.Set | None
    values: Mapping[str, Expression]
    walk: Walk


def _term(statement: Statement, carried: ScalarType) -> Expression:
    """What is added, in the type of the carry; halves are rounded once, when all of it is there."""
    value = float32_term(statement.value) if statement.value.type.is_half else statement.value
    return value if value.type is carried else Cast(value, carried)


def _count(loop: IterationVariable) -> int:
    assert isinstance(loop.begin, Literal)
    assert isinstance(loop.end, Literal)
    return int(loop.end.value) - int(loop.begin.value)
