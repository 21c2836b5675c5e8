"""Scans: reductions whose terms grow from element to element are computed each from the one before.

``y(n,i) +=! x(n,j) where j in 0:i+1`` becomes, for every ``n``, a block of a carry: ``c(n) = 0``, and for each ``i`` in
order ``c(n) += x(n,i)`` and ``y(n,i) = c(n)``: as many steps as there are elements, where there were as many as pairs.
What results is a program of the same language, which every later pass and proof treats like any other; that it
means the same is proven by ``tc.polyhedral.proof.verify_scans``.

Where an element adds several terms, these are added up first, into a tensor of their own, which is then scanned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

import islpy as isl

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
    float32_term,
    in_terms_of,
    written_iterators,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.language.program.within import neutral_element
from tc.polyhedral.ir.scans import Scan
from tc.polyhedral.schedule.growing_points import Points, Walk
from tc.polyhedral.schedule.growth import Growth, growth_of, without_mask


def scan_reductions(specialization: Specialization, context: isl.Context) -> tuple[Specialization, tuple[Scan, ...]]:
    """The program with a scan in the place of every reduction whose terms grow."""
    scanner = _Scanner(specialization, context)
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

    def __init__(self, specialization: Specialization, context: isl.Context) -> None:
        self.program: Program = specialization.program
        self.sizes = specialization.sizes
        self.context = context
        self.tensors = list(self.program.tensors)
        self.layouts = dict(specialization.layouts)
        self.scans: list[Scan] = []
        self.taken = {statement.name for statement in self.program.statements}
        self.blocks = max((block for s in self.program.statements for block in s.blocks), default=-1)

    def scanned(self, statement: Statement) -> tuple[Statement, ...]:
        """The statements that stand for one."""
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
        values = points.values(regular)
        walk = points.walk()
        if values is None or walk is None or not points.is_bounded():
            return None
        return self.carried(statement, points, _Step(regular.domain(), first, values, walk))

    def writes_distinct_elements(self, statement: Statement, growth: Growth) -> bool:
        written = replace(statement, iterators=written_iterators(statement))
        frame = frame_of(written, self.context, sizes=self.sizes)
        extents = self.layouts[statement.target].shape
        relation = access_relation(statement.target, statement.subscripts, extents, frame)
        return bool(relation.intersect_domain(growth.elements.set_tuple_name(statement.name)).is_injective())

    def carried(self, statement: Statement, points: Points, step: _Step) -> tuple[Statement, ...]:
        """A carry that is cleared, and a block that adds to it and stores it."""
        assert statement.reduction is not None
        rest = points.loops(points.kept)
        carry = self.carry(statement, tuple(map(points.extent, rest)))
        name, walk = points.growth.iterator, step.walk
        origin = DerivedOrigin("a scan", statement.origin)
        base = replace(
            statement,
            target=carry.name,
            subscripts=tuple(map(_from_zero, rest)),
            initialize=False,
            required=(),
            origin=origin,
        )
        clear = replace(
            base,
            name=self.named(statement, "clear"),
            iterators=rest,
            conditions=points.conditions(points.outside, points.kept),
            reduction=None,
            value=neutral_element(statement.reduction, carry.type),
        )
        term = _term(statement, carry.type)
        begun = self.begun(base, points, step.first, term)
        self.blocks += 1
        depth = len(statement.blocks)
        inside = replace(
            base, iterators=(*rest[:depth], walk.loop, *rest[depth:]), blocks=(*statement.blocks, self.blocks)
        )
        add = replace(
            inside,
            conditions=tuple(walk.at(c, name) for c in points.conditions(step.elements, points.written)),
            value=walk.at(in_terms_of(term, step.values), name),
        )
        type = self.layouts[statement.target].type
        total: Expression = Read(carry.name, base.subscripts, carry.type)
        subscripts = tuple(walk.at(subscript, name) for subscript in statement.subscripts)
        if not statement.initialize:
            old = Read(statement.target, subscripts, type)
            total = combined(statement.reduction, old if carry.type is type else Cast(old, carry.type), total)
        store = replace(
            inside,
            name=self.named(statement, "store"),
            conditions=tuple(walk.at(c, name) for c in points.conditions(points.growth.elements, points.written)),
            target=statement.target,
            subscripts=subscripts,
            reduction=None,
            value=total if carry.type is type else Cast(total, type),
        )
        values = {reduced: walk.at(value, name) for reduced, value in step.values.items()}
        first = begun.name if begun is not None else None
        self.scans.append(
            Scan(
                statement.name,
                name,
                walk.place,
                values,
                carry.name,
                clear.name,
                first,
                add.name,
                store.name,
                points.growth.backward,
            )
        )
        return (clear, add, store) if begun is None else (clear, begun, add, store)

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

    def carry(self, statement: Statement, shape: tuple[int, ...]) -> Tensor:
        """A new temporary for the carries: one for every value of the other iterators."""
        assert statement.reduction is not None
        type = carried_in(statement.reduction, self.layouts[statement.target].type)
        name = fresh_name(f"{statement.target}_carry", {tensor.name for tensor in self.tensors})
        extents = tuple(Literal(extent, INDEX_TYPE) for extent in shape)
        tensor = Tensor(name, type, extents, Role.TEMPORARY, DerivedOrigin("a carry", statement.origin))
        self.tensors.append(tensor)
        self.layouts[name] = Layout(type, shape, contiguous_strides(shape))
        return tensor


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


def _from_zero(loop: IterationVariable) -> Expression:
    """The place of a carry: loops may begin below or above 0."""
    name = IteratorReference(loop.name)
    if not isinstance(loop.begin, Literal) or loop.begin.value == 0:
        return name
    return Binary(BinaryOperator.SUBTRACT, name, loop.begin, INDEX_TYPE)
