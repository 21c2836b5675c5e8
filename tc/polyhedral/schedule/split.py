"""Split reductions: partial results, which may be computed in parallel, and their combination.

``C(m) += X(m,k)`` becomes ``P(m,p) +=! X(m,parts*s+p)`` and ``C(m) += P(m,p)``, a program of the same language, which
every later pass and proof treats like any other (Suriana, Adams and Kamil, *Parallel Associative Reductions in
Halide*, CGO 2017).  Loops that walk contiguous memory one after the other are split as the one loop that they form.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import assert_never

from tc.base.frozen import frozen
from tc.base.types import ScalarType, computation_type
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name, map_statement
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Statement,
    Tensor,
    in_terms_of,
    iterators_in,
    touches,
    walk,
)
from tc.language.program.specialization import Layout, Sizes, Specialization, contiguous_strides
from tc.language.program.terms import float32_term
from tc.language.program.written_elements import initial_conditions, is_scatter, written_iterators
from tc.language.prove.symbolic import greatest
from tc.polyhedral.analysis.strides import stride
from tc.polyhedral.ir.loops import LANES
from tc.polyhedral.ir.splits import Split


@frozen
class Walk:
    """Loops of a reduction that go along memory, one after the other: outermost first, with their values."""

    loops: tuple[tuple[IterationVariable, range], ...]

    @property
    def iterations(self) -> int:
        """How often its body runs."""
        return math.prod(len(values) for _, values in self.loops)

    def values(self, number: Expression) -> dict[str, Expression]:
        """The iterators of that iteration, the innermost one varying fastest."""
        found: dict[str, Expression] = {}
        for place, (iterator, values) in enumerate(reversed(self.loops), 1):
            last = place == len(self.loops)
            own = number if last else _binary(BinaryOperator.REMAINDER, number, len(values))
            found[iterator.name] = _binary(BinaryOperator.ADD, own, values.start) if values.start else own
            number = _binary(BinaryOperator.DIVIDE, number, len(values))
        return found


class Dealing(Enum):
    """Which iterations of a reduction go into one partial result."""

    TURNS = "turns"  # they take turns, so that neighbours go into neighbouring results
    RUNS = "runs"  # as many as there are, one after the other
    LANES = "lanes"  # those of one warp, in each of its lanes (see ``_Splitter.combine_in_lanes``)
    PAIRS = "pairs"  # pairs of neighbours take turns, as the sums of matrix instructions lie in lanes


def split_reductions(
    specialization: Specialization,
    parts: int,
    among: Collection[str] | None = None,
    dealing: Dealing = Dealing.TURNS,
) -> tuple[Specialization, tuple[Split, ...]]:
    """The program with so many partial results for every element of a reduction with more iterations than that.

    ``among``: the statements that may be split, by name; None for all.  With ``Dealing.LANES``, they combine partial
    results, as many at a time as a warp has lanes.
    """
    splitter = _Splitter(specialization, parts, dealing)
    split = splitter.combine_in_lanes if dealing is Dealing.LANES else splitter.split
    statements: list[Statement] = []
    combining: list[Statement] = []
    for statement in specialization.program.statements:
        first, *rest = split(statement) if among is None or statement.name in among else (statement,)
        # Partial results of several reductions in a row come first, so that they may share loops.
        while combining and (
            not rest or any(touches(statement, t.target) or t.blocks != statement.blocks for t in combining)
        ):
            statements.append(combining.pop(0))
        statements.append(first)
        combining += rest
    statements += combining
    program = replace(specialization.program, tensors=tuple(splitter.tensors), statements=tuple(statements))
    return replace(specialization, program=program, layouts=splitter.layouts), tuple(splitter.splits)


class _Splitter:
    """Collects the tensors of partial results."""

    def __init__(self, specialization: Specialization, parts: int, dealing: Dealing) -> None:
        self.program: Program = specialization.program
        self.sizes = specialization.sizes
        self.parts = parts
        self.dealing = dealing
        self.tensors = list(specialization.program.tensors)
        self.layouts = dict(specialization.layouts)
        self.splits: list[Split] = []

    def split(self, statement: Statement) -> Iterator[Statement]:
        """The statements that stand for one."""
        chosen = self.choose(statement)
        extents = [_greatest_end(iterator, self.sizes) for iterator in written_iterators(statement)]
        if chosen is None or None in extents:
            yield statement
            return
        shape = tuple(extent for extent in extents if extent is not None)
        # What blocks have lies side by side where there is much of it, and else what is combined does.
        outermost = self.dealing is Dealing.RUNS and math.prod(shape) >= self.parts
        partials = self.partials(statement, (self.parts, *shape) if outermost else (*shape, self.parts))
        taken = {i.name for i in statement.iterators}
        name = chosen.loops[-1][0].name
        part = fresh_name(f"{name}_part", taken)
        step = fresh_name(f"{name}_step", taken | {part})
        rounds, number = self.number(chosen.iterations, part, step)
        values = chosen.values(number)
        kept = tuple(IteratorReference(i.name) for i in written_iterators(statement))
        own = IteratorReference(part)
        subscripts = (own, *kept) if outermost else (*kept, own)
        origin = DerivedOrigin("a reduction in two steps", statement.origin)
        split = map_statement(statement, lambda expression: in_terms_of(expression, values))
        conditions = split.conditions
        if rounds * self.parts > chosen.iterations:
            conditions = (*conditions, _binary(BinaryOperator.LESS, number, chosen.iterations, ScalarType.BOOL))
        steps = (_counted(step, rounds),) if outermost else (_counted(part, self.parts), _counted(step, rounds))
        iterators = [
            new
            for old in split.iterators
            for new in (steps if old.name == name else (old,))
            if old.name == name or old.name not in values
        ]
        if outermost:
            iterators.insert(len(statement.blocks), _counted(part, self.parts))
        yield replace(
            split,
            iterators=tuple(iterators),
            conditions=conditions,
            target=partials.name,
            subscripts=subscripts,
            initialize=True,
            value=float32_term(split.value) if split.value.type.is_half else split.value,
            origin=origin,
        )
        total = self.total_of(statement)
        yield replace(
            statement,
            name=total,
            iterators=(*written_iterators(statement), _counted(part, self.parts)),
            conditions=initial_conditions(statement),
            value=Read(partials.name, subscripts, partials.type),
            required=(),
            origin=origin,
        )
        self.splits.append(Split(statement.name, values, total, part))

    def number(self, iterations: int, part: str, step: str) -> tuple[int, Expression]:
        """Steps of each partial result, and the iteration of a step of a part."""
        rounds, own, other = -(-iterations // self.parts), IteratorReference(part), IteratorReference(step)
        match self.dealing:
            case Dealing.RUNS:
                return rounds, _sum(_times(rounds, own), other)
            case Dealing.TURNS | Dealing.LANES:
                return rounds, _sum(_times(self.parts, other), own)
            case Dealing.PAIRS:
                pair = _binary(BinaryOperator.REMAINDER, other, 2)
                before = _times(2 * self.parts, _binary(BinaryOperator.DIVIDE, other, 2))
                return 2 * -(-iterations // (2 * self.parts)), _sum(_sum(before, _times(2, own)), pair)
            case _:
                assert_never(self.dealing)

    def combine_in_lanes(self, statement: Statement) -> Iterator[Statement]:
        """``C(m) += P(m,p)`` in two: ``R(m,q) +=! P(m,lanes*(q/lanes)+l)`` in every lane, and ``C(m) += R(m,lanes*w)``.

        That all lanes add up the same is what makes it an exchange among them (``tc.codegen.printer.lane_totals``).
        """
        part, value = statement.iterators[-1], statement.value
        assert isinstance(value, Read), "it combines partial results"
        extent = self.layouts[value.tensor].shape[-1]
        partials = self.partials(statement, self.layouts[value.tensor].shape)
        lane, group = (fresh_name(f"{part.name}_{n}", {i.name for i in statement.iterators}) for n in ("lane", "group"))
        first = _times(LANES, _binary(BinaryOperator.DIVIDE, IteratorReference(part.name), LANES))
        number = Binary(BinaryOperator.ADD, first, IteratorReference(lane), INDEX_TYPE)
        origin = DerivedOrigin("a reduction in lanes", statement.origin)
        kept = value.subscripts[:-1]
        yield replace(
            statement,
            iterators=(*statement.iterators, _counted(lane, LANES)),
            target=partials.name,
            subscripts=value.subscripts,
            initialize=True,
            value=Read(value.tensor, (*kept, number), value.type),
            origin=origin,
        )
        total = self.total_of(statement)
        yield replace(
            statement,
            name=total,
            iterators=(*statement.iterators[:-1], _counted(group, extent // LANES)),
            value=Read(partials.name, (*kept, _times(LANES, IteratorReference(group))), value.type),
            required=(),
            origin=origin,
        )
        self.splits.append(Split(statement.name, {part.name: number}, total, part.name))

    def total_of(self, statement: Statement) -> str:
        """A new name for the statement that combines partial results."""
        return fresh_name(f"{statement.name}_total", {own.name for own in self.program.statements})

    def choose(self, statement: Statement) -> Walk | None:
        """The loops to split: those along which memory is read, else the last that is long enough.

        Runs are best whole, and long where they are along memory, else of the outermost loop.
        """
        if (
            statement.reduction is None
            or is_scatter(statement)
            or any(r.tensor == statement.target for r in reads_of(statement))
        ):
            return None
        written = written_iterators(statement)
        least = self.parts + (self.dealing is not Dealing.RUNS)
        found = [
            walk
            for iterator in statement.iterators
            if iterator not in written
            for walk in (walk_of(statement, iterator, self.layouts),)
            if walk is not None and walk.iterations >= least
        ]
        along = [walk for walk in found if self.reads_along(statement, walk.loops[-1][0].name)]
        if self.dealing is not Dealing.RUNS:
            return next(reversed(along or found), None)

        def rank(walk: Walk) -> tuple[bool, bool]:
            return walk.iterations % self.parts == 0, walk in along and walk.iterations // self.parts >= LANES

        return max(found, key=rank, default=None)

    def reads_along(self, statement: Statement, iterator: str) -> bool:
        """Whether neighbouring iterations read neighbouring elements."""
        return any(stride(r.subscripts, self.layouts[r.tensor], iterator) == 1 for r in reads_of(statement))

    def partials(self, statement: Statement, shape: tuple[int, ...]) -> Tensor:
        """A new temporary for partial results, of the type in which they are computed."""
        type = computation_type(self.layouts[statement.target].type)
        name = fresh_name(f"{statement.target}_parts", {tensor.name for tensor in self.tensors})
        extents = tuple(Literal(extent, INDEX_TYPE) for extent in shape)
        tensor = Tensor(name, type, extents, Role.TEMPORARY, DerivedOrigin("partial results", statement.origin))
        self.tensors.append(tensor)
        self.layouts[name] = Layout(type, shape, contiguous_strides(shape))
        return tensor


def reads_of(statement: Statement) -> Iterator[Read]:
    """The reads in the value of a statement, from left to right."""
    return (e for e in walk(statement.value) if isinstance(e, Read))


def _extent(iterator: IterationVariable) -> range | None:
    """The values of the iterator; None where they depend on others."""
    match iterator.begin, iterator.end:
        case Literal(begin), Literal(end):
            return range(int(begin), max(int(begin), int(end)))
        case _:
            return None


def _greatest_end(iterator: IterationVariable, sizes: Sizes) -> int | None:
    """Where the iterator ends for the greatest values of open sizes; None where that depends on others."""
    values = _extent(iterator)
    if values is not None:
        return values.stop
    if not isinstance(iterator.begin, Literal) or iterators_in((iterator.end,)):
        return None
    end = greatest(iterator.end, sizes)
    return None if end is None else max(int(iterator.begin.value), end)


def walk_of(statement: Statement, last: IterationVariable, layouts: Mapping[str, Layout]) -> Walk | None:
    """The loop, which reduces, and those around it that go on in memory where it ends; None where its range varies.

    A loop that a condition is on stays alone: of a number of iterations, it would be a condition on quotients, of which
    isl generates wrong loops where they are several.
    """
    written = written_iterators(statement)
    # Ranges of other iterators must not depend on one that is replaced.
    used = iterators_in(bound for i in statement.iterators for bound in (i.begin, i.end))
    ranges = {
        i: values
        for i in statement.iterators
        if i not in written and i.name not in used and (values := _extent(i)) is not None
    }
    if last not in ranges:
        return None
    reads = list(reads_of(statement))

    def distances(iterator: IterationVariable) -> list[int | None]:
        return [stride(read.subscripts, layouts[read.tensor], iterator.name) for read in reads]

    loops = [last]
    conditional = iterators_in(statement.conditions)
    steps = [None] if last.name in conditional else distances(last)
    while None not in steps:
        behind = [step and step * math.prod(len(ranges[i]) for i in loops) for step in steps]
        others = (i for i in ranges if i not in loops and i.name not in conditional)
        around = [i for i in others if distances(i) == behind and any(behind)]
        if not around:
            break
        loops.insert(0, around[0])
    return Walk(tuple((i, ranges[i]) for i in loops))


def _counted(name: str, count: int) -> IterationVariable:
    return IterationVariable(name, Literal(0, INDEX_TYPE), Literal(count, INDEX_TYPE))


def _binary(operator: BinaryOperator, left: Expression, right: int, type: ScalarType = INDEX_TYPE) -> Expression:
    return Binary(operator, left, Literal(right, INDEX_TYPE), type)


def _sum(left: Expression, right: Expression) -> Expression:
    return Binary(BinaryOperator.ADD, left, right, INDEX_TYPE)


def _times(factor: int, value: Expression) -> Expression:
    return Binary(BinaryOperator.MULTIPLY, Literal(factor, INDEX_TYPE), value, INDEX_TYPE)
