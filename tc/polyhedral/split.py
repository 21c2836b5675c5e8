"""Reductions in two steps: partial results, which may be computed at the same time, and their combination.

``C(m) += X(m,k)`` becomes ``P(m,p) +=! X(m,parts*s+p)`` and ``C(m) += P(m,p)``, a program of the same language, so that
every later pass and proof takes it as it takes any other (Suriana, Adams and Kamil, *Parallel Associative Reductions in
Halide*, CGO 2017).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tc.grammar.syntax import BinaryOperator
from tc.language.calls import fresh_name, map_statement
from tc.language.program import (
    INDEX_TYPE,
    Binary,
    Cast,
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
    initial_conditions,
    iterators_in,
    rebuild,
    walk,
    written_iterators,
)
from tc.language.specialization import Layout, Specialization, contiguous_strides
from tc.polyhedral.reuse import product_loops
from tc.polyhedral.strides import stride
from tc.types import ScalarType, computation_type


@dataclass(frozen=True, slots=True)
class Split:
    """What was done to a statement: ``iterator`` is ``value`` in the statement that makes the partial results.

    ``total``: the name of the statement that combines them.
    """

    statement: str
    iterator: str
    value: Expression
    total: str


def split_reductions(
    specialization: Specialization, parts: int, among: Collection[str] | None = None
) -> tuple[Specialization, tuple[Split, ...]]:
    """The program with so many partial results for every element of a reduction with more iterations than that.

    ``among``: the statements that may be split, by name; None for all.
    """
    splitter = _Splitter(specialization, parts)
    statements = tuple(
        part
        for statement in specialization.program.statements
        for part in (splitter.split(statement) if among is None or statement.name in among else (statement,))
    )
    program = replace(specialization.program, tensors=tuple(splitter.tensors), statements=statements)
    return replace(specialization, program=program, layouts=splitter.layouts), tuple(splitter.splits)


@dataclass(frozen=True, slots=True)
class Plan:
    """How many partial results there are, combined in how many, and so on; and of which statements.

    ``required``: it is an error if there are none.
    """

    parts: tuple[int, ...]
    among: frozenset[str] | None = None
    required: bool = False


# Reductions with at least so many iterations are split by default: into the lanes of a warp, or into the threads of a
# block, whose results are combined in two steps.
_SPLIT_FROM: Final = ((512, (256, 16)), (64, (32,)))


def default_split(specialization: Specialization) -> Plan:
    """Splits the reductions along which memory is read where nothing is read along another loop, but no products.

    The threads of a block share the operands of these, and read them in runs of any direction.
    """
    found: dict[str, int] = {}
    for statement in specialization.program.statements:
        reduced = [i for i in statement.iterators if i not in written_iterators(statement)]
        along = {
            iterator.name
            for iterator in statement.iterators
            for read in _reads(statement)
            if stride(read.subscripts, specialization.layouts[read.tensor], iterator.name) == 1
        }
        kept = [iterator.name for iterator in written_iterators(statement)]
        if any(product_loops((read.subscripts for read in _reads(statement)), kept)):
            continue
        if statement.reduction is not None and along and along <= {iterator.name for iterator in reduced}:
            extents = [_extent(iterator) for iterator in reduced if iterator.name in along]
            found[statement.name] = max(len(extent or ()) for extent in extents)
    longest = max(found.values(), default=0)
    for least, parts in _SPLIT_FROM:
        among = frozenset(name for name, extent in found.items() if extent >= least)
        if longest >= least:
            return Plan(parts, among)
    return Plan(())


class _Splitter:
    """Collects the tensors of partial results."""

    def __init__(self, specialization: Specialization, parts: int) -> None:
        self.program: Program = specialization.program
        self.parts = parts
        self.tensors = list(specialization.program.tensors)
        self.layouts = dict(specialization.layouts)
        self.splits: list[Split] = []

    def split(self, statement: Statement) -> Iterator[Statement]:
        """The statements that stand for one."""
        chosen = self.choose(statement)
        extents = [_extent(iterator) for iterator in written_iterators(statement)]
        if chosen is None or None in extents:
            yield statement
            return
        shape = (*(extent.stop for extent in extents if extent is not None), self.parts)
        partials = self.partials(statement, shape)
        iterator, values = chosen
        taken = {i.name for i in statement.iterators}
        part = fresh_name(f"{iterator.name}_part", taken)
        step = fresh_name(f"{iterator.name}_step", taken | {part})
        value = _add(_times(self.parts, IteratorReference(step)), IteratorReference(part), values.start)
        kept = tuple(IteratorReference(i.name) for i in written_iterators(statement))
        origin = DerivedOrigin("a reduction in two steps", statement.origin)
        split = map_statement(statement, lambda expression: _put_in(expression, {iterator.name: value}))
        conditions = split.conditions
        if len(values) % self.parts:
            end = Literal(values.stop, INDEX_TYPE)
            conditions = (*conditions, Binary(BinaryOperator.LESS, value, end, ScalarType.BOOL))
        rounds = -(-len(values) // self.parts)
        iterators = [
            new
            for old in split.iterators
            for new in ((_counted(part, self.parts), _counted(step, rounds)) if old.name == iterator.name else (old,))
        ]
        yield replace(
            split,
            iterators=tuple(iterators),
            conditions=conditions,
            target=partials.name,
            subscripts=(*kept, IteratorReference(part)),
            initialize=True,
            value=split.value if split.value.type is partials.type else Cast(split.value, partials.type),
            origin=origin,
        )
        total = f"{statement.name}_total"
        yield replace(
            statement,
            name=total,
            iterators=(*written_iterators(statement), _counted(part, self.parts)),
            conditions=initial_conditions(statement),
            value=Read(partials.name, (*kept, IteratorReference(part)), partials.type),
            required=(),
            origin=origin,
        )
        self.splits.append(Split(statement.name, iterator.name, value, total))

    def choose(self, statement: Statement) -> tuple[IterationVariable, range] | None:
        """The iterator to split, and its values: one along which memory is read, else the last that is long enough."""
        if statement.reduction is None or any(r.tensor == statement.target for r in _reads(statement)):
            return None
        written = written_iterators(statement)
        # Ranges of other iterators must not depend on it.
        used = iterators_in(bound for i in statement.iterators for bound in (i.begin, i.end))
        found = [
            (iterator, values)
            for iterator in statement.iterators
            if iterator not in written and iterator.name not in used
            for values in (_extent(iterator),)
            if values is not None and len(values) > self.parts
        ]
        along = [pair for pair in found if self.reads_along(statement, pair[0].name)]
        return next(reversed(along or found), None)

    def reads_along(self, statement: Statement, iterator: str) -> bool:
        """Whether neighbouring iterations read neighbouring elements."""
        return any(stride(r.subscripts, self.layouts[r.tensor], iterator) == 1 for r in _reads(statement))

    def partials(self, statement: Statement, shape: tuple[int, ...]) -> Tensor:
        """A new temporary for partial results, of the type in which they are computed."""
        type = computation_type(self.layouts[statement.target].type)
        name = fresh_name(f"{statement.target}_parts", {tensor.name for tensor in self.tensors})
        extents = tuple(Literal(extent, INDEX_TYPE) for extent in shape)
        tensor = Tensor(name, type, extents, Role.TEMPORARY, DerivedOrigin("partial results", statement.origin))
        self.tensors.append(tensor)
        self.layouts[name] = Layout(type, shape, contiguous_strides(shape))
        return tensor


def _reads(statement: Statement) -> Iterator[Read]:
    return (e for e in walk(statement.value) if isinstance(e, Read))


def _extent(iterator: IterationVariable) -> range | None:
    """The values of the iterator; None where they depend on others."""
    match iterator.begin, iterator.end:
        case Literal(begin), Literal(end):
            return range(int(begin), max(int(begin), int(end)))
        case _:
            return None


def _counted(name: str, count: int) -> IterationVariable:
    return IterationVariable(name, Literal(0, INDEX_TYPE), Literal(count, INDEX_TYPE))


def _put_in(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """The expression with iterators replaced."""
    if isinstance(expression, IteratorReference):
        return values.get(expression.name, expression)
    return rebuild(expression, lambda child: _put_in(child, values))


def _times(factor: int, value: Expression) -> Expression:
    return Binary(BinaryOperator.MULTIPLY, Literal(factor, INDEX_TYPE), value, INDEX_TYPE)


def _add(left: Expression, right: Expression, constant: int) -> Expression:
    total = Binary(BinaryOperator.ADD, left, right, INDEX_TYPE)
    return Binary(BinaryOperator.ADD, total, Literal(constant, INDEX_TYPE), INDEX_TYPE) if constant else total
