"""Puts the parts of a definition together: drafts with their ranges become the statements of a ``Program``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.algebra.polynomial import Atoms, Polynomial
from tc.language.algebra.rewriting import fresh_name
from tc.language.draft.draft import Bounds, CallDraft, Draft, Item
from tc.language.draft.requirements import Requirements
from tc.language.draft.rules import iteration_order
from tc.language.program.program import (
    INDEX_TYPE,
    Cast,
    DerivedOrigin,
    Expression,
    InRange,
    IterationVariable,
    IteratorReference,
    Literal,
    Origin,
    Program,
    Read,
    Role,
    Scalar,
    Statement,
    Tensor,
    TextOrigin,
)
from tc.language.program.within import within
from tc.language.ranges.calls import inlined_statements
from tc.language.ranges.progress import Progress
from tc.language.ranges.ranges import Ranges


@frozen
class Head:
    """What a definition declares."""

    name: str
    sizes: tuple[str, ...]
    scalars: tuple[Scalar, ...]
    inputs: Mapping[str, Tensor]
    arguments: tuple[str, ...]
    results: tuple[str, ...]


@frozen
class SavedValue:
    """A value that comes in with the result ``source`` and is kept in the tensor ``copy``."""

    source: str
    copy: str
    origin: Origin


@frozen
class Assembly:
    """Everything that is known about a definition without errors.

    ``types``: of every tensor that comprehensions and calls write.  ``incoming``: the results that are read before
    they are written.
    """

    head: Head
    types: Mapping[str, ScalarType]
    incoming: frozenset[str]
    saved: Sequence[SavedValue]
    ranges: Ranges
    requirements: Requirements
    atoms: Atoms

    def program(self, items: Sequence[Item], source: str | None) -> Program:
        """The program of all statements in order."""
        tensors = {t for call in self.ranges.calls.values() for t in call.call.tensors.values()}
        declared = {*self.head.sizes, *(s.name for s in self.head.scalars), *self.head.inputs, *self.types, *tensors}
        unnumbered = [self._copy(saved, declared) for saved in self.saved]
        # Blocks are numbered as they begin, in the text and in the definitions that it calls.
        numbers: dict[tuple[int | None, int], int] = {}
        for item in items:
            if isinstance(item, CallDraft):
                inlined = inlined_statements(self.ranges.calls[item.number], declared)
                found = [replace(s, iterators=tuple(map(self._normal, s.iterators))) for s in inlined]
            else:
                found = [self._statement(self.ranges.resolved[item.number])]
            called = item.number if isinstance(item, CallDraft) else None
            for statement in found:
                blocks = tuple(numbers.setdefault((called, block), len(numbers)) for block in statement.blocks)
                unnumbered.append(replace(statement, blocks=blocks) if blocks else statement)
        prefix = _statement_prefix({*declared, *(statement.target for statement in unnumbered)})
        statements = tuple(
            replace(in_order_of_appearance(s), name=f"{prefix}{number}") for number, s in enumerate(unnumbered)
        )
        return Program(
            name=self.head.name,
            sizes=self.head.sizes,
            scalars=self.head.scalars,
            tensors=(*self.head.inputs.values(), *self._written(statements)),
            arguments=self.head.arguments,
            results=self.head.results,
            statements=statements,
            preconditions=self.requirements.preconditions,
            source=source,
        )

    def _statement(self, progress: Progress) -> Statement:
        draft = progress.draft
        for condition, span in draft.requirements:
            origin = draft.origin if span is None else TextOrigin(span)
            self.requirements.add(condition, "the statement asks for it in its `where`", origin)
        return Statement(
            name="",
            iterators=tuple(self._iterator(name, progress) for name in draft.order),
            conditions=draft.conditions,
            target=draft.target,
            subscripts=draft.subscripts,
            reduction=draft.reduction,
            initialize=draft.initialize,
            value=self._within(draft, progress),
            required=draft.required,
            distinct=draft.distinct,
            origin=draft.origin,
            blocks=draft.blocks,
        )

    def _within(self, draft: Draft, progress: Progress) -> Expression:
        """The value where ranges that read tensors have their iterators, the neutral element elsewhere."""
        value = draft.value.expression
        if not draft.data_ranges or draft.reduction is None:
            return value
        parts = [
            InRange(IteratorReference(d.iterator), d.begin, d.end, self._iterator(d.iterator, progress).end)
            for d in draft.data_ranges
        ]
        return within(value, parts, draft.reduction)

    def _normal(self, iterator: IterationVariable) -> IterationVariable:
        """A range of a callee after its sizes were replaced."""
        if isinstance(iterator.begin, Literal) and isinstance(iterator.end, Literal):
            return iterator if iterator.begin.value <= iterator.end.value else replace(iterator, end=iterator.begin)
        begin, end = self.atoms.polynomial(iterator.begin), self.atoms.polynomial(iterator.end)
        length = (end - begin).constant
        if length is not None and length < 0:
            end = begin
        return replace(iterator, begin=self.atoms.expression(begin), end=self.atoms.expression(end))

    def _iterator(self, name: str, progress: Progress) -> IterationVariable:
        bounds = progress.draft.bounds.get(name)
        if bounds is not None:
            return IterationVariable(name, bounds.begin, bounds.end)
        interval = progress.intervals[name]
        return IterationVariable(name, self.atoms.expression(interval.begin), self.atoms.expression(interval.end))

    def _copy(self, saved: SavedValue, declared: set[str]) -> Statement:
        """Keeps a value that is read after its storage is written."""
        iterators: list[IterationVariable] = []
        for extent in self._shape(self.ranges.shapes[saved.source]):
            name = fresh_name("i", {*declared, *(i.name for i in iterators)})
            iterators.append(IterationVariable(name, Literal(0, INDEX_TYPE), extent))
        subscripts = tuple(IteratorReference(iterator.name) for iterator in iterators)
        value = Read(saved.source, subscripts, self.types[saved.source])
        reason = f"the value that {saved.source} comes in with is read after {saved.source} is written"
        return Statement(
            name="",
            iterators=tuple(iterators),
            conditions=(),
            target=saved.copy,
            subscripts=subscripts,
            reduction=None,
            initialize=False,
            value=value if value.type is self.types[saved.copy] else Cast(value, self.types[saved.copy]),
            required=(),
            origin=DerivedOrigin(reason, saved.origin),
        )

    def _written(self, statements: Sequence[Statement]) -> Iterator[Tensor]:
        """Results and temporaries in the order of their first write."""
        inside = {
            call.call.tensors[tensor.name]: (tensor.type, call.extents[call.call.tensors[tensor.name]])
            for call in self.ranges.calls.values()
            for tensor in call.call.callee.tensors
            if tensor.role is Role.TEMPORARY
        }
        first: dict[str, Statement] = {}
        for statement in statements:
            first.setdefault(statement.target, statement)
        for name, statement in first.items():
            if name in inside:
                type, extents = inside[name]
            else:
                type, extents = self.types[name], self.ranges.shapes[name]
            role = Role.TEMPORARY
            if name in self.head.results:
                role = Role.IN_OUT if name in self.incoming else Role.OUTPUT
            yield Tensor(name, type, self._shape(extents), role, statement.origin)

    def _shape(self, extents: Sequence[Polynomial]) -> tuple[Expression, ...]:
        return tuple(self.atoms.expression(self.atoms.clamped(extent)) for extent in extents)


def in_order_of_appearance(statement: Statement) -> Statement:
    """The statement with its iterators in order of appearance, which folding may have changed."""
    iterators = {iterator.name: iterator for iterator in statement.iterators}
    bounds = {name: Bounds(iterator.begin, iterator.end, None) for name, iterator in iterators.items()}
    expressions = [*statement.subscripts, statement.value, *statement.required, *statement.conditions]
    steps = (iterator.name for iterator in statement.sequence)
    order = tuple(iterators[name] for name in iteration_order(expressions, bounds, steps))
    return statement if order == statement.iterators else replace(statement, iterators=order)


def _statement_prefix(tensors: Collection[str]) -> str:
    """What the names of statements start with: none of them may name a tensor, for isl knows both as tuples."""
    prefix = "S"
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in tensors):
        prefix += "_"
    return prefix
