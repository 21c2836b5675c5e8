"""Where a reduction that grows has its elements and terms, and loops and conditions over these."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import islpy as isl

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name
from tc.language.isl.affine import Frame, iteration_domain
from tc.language.isl.expressions import affine_expression, conditions_of
from tc.language.isl.pieces import pieces_of
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Statement,
    in_terms_of,
    iterators_in,
)
from tc.language.program.specialization import Sizes
from tc.language.program.written_elements import written_iterators
from tc.polyhedral.schedule.growth import Growth


@dataclass(frozen=True)
class Walk:
    """The loop that counts the steps of a scan, and the iterator that grows, in terms of it.

    ``blocks``: a loop over blocks of steps, if there is one.  ``bound``: what is true of all steps beside the ends of
    loops.
    """

    loop: IterationVariable
    place: Expression
    blocks: tuple[IterationVariable, ...] = ()
    bound: tuple[Expression, ...] = ()

    def at(self, expression: Expression, name: str) -> Expression:
        """The expression with the place instead of the iterator called so."""
        return in_terms_of(expression, {name: self.place})

    @property
    def steps(self) -> int | None:
        """How many there are; None where that is no number."""
        match self.loop.begin, self.loop.end:
            case Literal(begin), Literal(end):
                return int(end) - int(begin)
            case _:
                return None

    def in_blocks(self, length: int, taken: Collection[str]) -> Walk:
        """The same steps in blocks of so many; their number is known."""
        steps = self.steps
        assert steps is not None
        block, step = (fresh_name(f"{self.loop.name}_{suffix}", taken) for suffix in ("block", "within"))
        first: Expression = _binary(BinaryOperator.MULTIPLY, Literal(length, INDEX_TYPE), IteratorReference(block))
        number = _binary(BinaryOperator.ADD, first, IteratorReference(step))
        assert isinstance(self.loop.begin, Literal)
        if self.loop.begin.value:
            number = _binary(BinaryOperator.ADD, number, self.loop.begin)
        bound = Binary(BinaryOperator.LESS, number, self.loop.end, ScalarType.BOOL)
        return Walk(
            _counted(step, length),
            in_terms_of(self.place, {self.loop.name: number}),
            (_counted(block, -(-steps // length)),),
            (bound,) if steps % length else (),
        )


@dataclass(frozen=True)
class Points:
    """Sets of points of a statement that grows, and the loops over them."""

    statement: Statement
    growth: Growth
    sizes: Sizes

    @property
    def written(self) -> tuple[str, ...]:
        """The names of the iterators that choose elements."""
        return tuple(iterator.name for iterator in written_iterators(self.statement))

    @property
    def kept(self) -> tuple[str, ...]:
        """Those without the one that the scan runs along."""
        return tuple(name for name in self.written if name != self.growth.iterator)

    @property
    def reduced(self) -> tuple[str, ...]:
        """The names of the others."""
        written = set(self.written)
        return tuple(i.name for i in self.statement.iterators if i.name not in written)

    @property
    def outside(self) -> isl.Set:
        """The elements without the iterator that the scan runs along."""
        return self.growth.elements.project_out(isl.dim_type.set, self.written.index(self.growth.iterator), 1)

    def is_bounded(self, first: isl.Set | None) -> bool:
        """Whether all loops have ends: over elements, and over what the ``first`` of them have."""
        names = (*self.kept, *self.reduced)
        return len(self.loops(self.written)) == len(self.written) and (
            first is None or len(self.loops_of(first, names)) == len(names)
        )

    def loops(self, names: tuple[str, ...]) -> tuple[IterationVariable, ...]:
        """Over what those iterators are at all elements."""
        return self.loops_of(self.growth.elements, self.written, names)

    def loops_of(
        self, points: isl.Set, names: tuple[str, ...], some: tuple[str, ...] | None = None
    ) -> tuple[IterationVariable, ...]:
        """Over what they are at these points ``[names]``."""
        found = (self.ends(points, names, name) for name in (names if some is None else some))
        return tuple(loop for loop in found if loop is not None)

    def ends(self, points: isl.Set, names: tuple[str, ...], name: str) -> IterationVariable | None:
        """The loop over the values that an iterator has at these points; None where it has no ends by itself."""
        own = next(iterator for iterator in self.statement.iterators if iterator.name == name)
        if self.sizes and not iterators_in((own.begin, own.end)):
            return own
        position = names.index(name)
        least, most = points.dim_min_val(position), points.dim_max_val(position)
        if not (least.is_int() and most.is_int()):
            return None
        begin, end = int(least.to_python()), int(most.to_python()) + 1
        return IterationVariable(name, Literal(begin, INDEX_TYPE), Literal(end, INDEX_TYPE))

    def extent(self, loop: IterationVariable) -> int:
        """How many values the iterator of a loop over all elements has at most."""
        greatest = int(self.growth.elements.dim_max_val(self.written.index(loop.name)).to_python())
        begin = int(loop.begin.value) if isinstance(loop.begin, Literal) else 0
        return greatest + 1 - begin

    def conditions(self, points: isl.Set, names: tuple[str, ...]) -> tuple[Expression, ...]:
        """What is true of points of these elements beside the ends of loops over all of them."""
        return self.conditions_in(points, names, self.loops(names))

    def conditions_in(
        self, points: isl.Set, names: tuple[str, ...], loops: tuple[IterationVariable, ...]
    ) -> tuple[Expression, ...]:
        """What is true of the points beside the ends of the loops."""
        frame = Frame(points.get_ctx(), "points", names, sizes=self.sizes)
        box = iteration_domain(replace(self.statement, name="points", iterators=loops, conditions=()), frame)
        assert box is not None, "ends of loops are affine"
        sizes = tuple(name for name, _ in self.sizes)
        return conditions_of(points.gist(box.reset_tuple_id()), names, sizes)

    def values(self, steps: isl.Map) -> Mapping[str, Expression] | None:
        """What the reduced iterators are at each element; None where they have several values, or no simple ones."""
        found = self.determined(steps)
        return found if len(found) == len(self.reduced) and steps.is_single_valued() else None

    def determined(self, steps: isl.Map) -> Mapping[str, Expression]:
        """The reduced iterators that have one value at each element, and a simple one."""
        sizes = tuple(name for name, _ in self.sizes)
        count, found = len(self.reduced), dict[str, Expression]()
        for position, name in enumerate(self.reduced):
            own = steps.project_out(isl.dim_type.out, position + 1, count - position - 1)
            own = own.project_out(isl.dim_type.out, 0, position)
            if not own.is_single_valued():
                continue
            pieces = pieces_of(isl.PwMultiAff.from_map(own).get_pw_aff(0).coalesce())
            value = affine_expression(pieces[0][1], self.written, sizes) if len(pieces) == 1 else None
            if value is not None:
                found[name] = value
        return found

    def walk(self) -> Walk | None:
        """The loop in the order of the scan, which counts from 0 where that is backward."""
        name = self.growth.iterator
        own = self.ends(self.growth.elements, self.written, name)
        if own is None or not self.growth.backward:
            return None if own is None else Walk(own, IteratorReference(name))
        taken = {iterator.name for iterator in self.statement.iterators}
        step = fresh_name(f"{name}_step", taken)
        last = _less(own.end, Literal(1, INDEX_TYPE))
        count = _less(own.end, own.begin)
        return Walk(
            IterationVariable(step, Literal(0, INDEX_TYPE), count),
            Binary(BinaryOperator.SUBTRACT, last, IteratorReference(step), INDEX_TYPE),
        )

    def steps(self) -> tuple[isl.Map, isl.Set | None]:
        """``{ [written] -> [reduced] }``, what every step adds; and ``[kept, reduced]``, what the first elements have.

        That is None where they have nothing, or one step like the others.
        """
        added = self.growth.added
        if self.values(added) is not None:
            return added, None
        regular = added.intersect_domain(self.growth.later)
        first = added.subtract(regular)
        if first.is_empty():
            return regular, None
        position = self.written.index(self.growth.iterator)
        return regular, first.wrap().flatten().project_out(isl.dim_type.set, position, 1)


def from_zero(loop: IterationVariable) -> Expression:
    """The place of an iterator in a tensor of its values: loops may begin below or above 0."""
    name = IteratorReference(loop.name)
    if not isinstance(loop.begin, Literal) or loop.begin.value == 0:
        return name
    return Binary(BinaryOperator.SUBTRACT, name, loop.begin, INDEX_TYPE)


def _counted(name: str, count: int) -> IterationVariable:
    return IterationVariable(name, Literal(0, INDEX_TYPE), Literal(count, INDEX_TYPE))


def _binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression:
    return Binary(operator, left, right, INDEX_TYPE)


def _less(left: Expression, right: Expression) -> Expression:
    match left, right:
        case Literal(first), Literal(second):
            return Literal(int(first) - int(second), INDEX_TYPE)
        case _, Literal(0):
            return left
        case _:
            return Binary(BinaryOperator.SUBTRACT, left, right, INDEX_TYPE)
