"""Statements on their way from text to ``Program``: typed, versioned, but with ranges still to be inferred."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from tc.base.errors import Span
from tc.base.frozen import frozen
from tc.grammar.syntax import ArgPart
from tc.language.draft.typed import Typed
from tc.language.program.guards import GuardedRead, guarded_reads
from tc.language.program.program import Expression, Origin, Program, Read, Reduction


@frozen
class Bounds:
    """``begin <= iterator < end`` as a ``where`` gives it."""

    begin: Expression
    end: Expression
    span: Span | None


@frozen
class DataRange:
    """``begin <= iterator < end`` as a ``where`` gives it, with bounds that read tensors."""

    iterator: str
    begin: Expression
    end: Expression
    span: Span | None


@frozen
class Places:
    """Where the parts of a comprehension stand in the text; nowhere if there is none.

    ``iterators`` and ``reads`` hold the first place of each.
    """

    statement: Span | None = None
    operator: Span | None = None
    subscripts: tuple[Span, ...] = ()
    iterators: Mapping[str, Span] = field(default_factory=dict)
    reads: Mapping[Read, Span] = field(default_factory=dict)

    def iterator(self, name: str) -> Span | None:
        """The first place of an iterator, else the statement."""
        return self.iterators.get(name, self.statement)

    def read(self, read: Read) -> Span | None:
        """The first place of a read, else the statement."""
        return self.reads.get(read, self.statement)

    def subscript(self, dimension: int) -> Span | None:
        """The place of a subscript of the left-hand side, else the statement."""
        return self.subscripts[dimension] if dimension < len(self.subscripts) else self.statement


@frozen
class Draft:
    """A comprehension.  ``order``: its iterators, as the ``Program`` will list them.

    ``name``: what the text calls the target.  ``reduced``: the iterators that the left-hand side does not mention.
    ``extents``: of dimensions in which it scatters, where it says so.  ``requirements``: conditions of the ``where``
    without iterators, which the call must fulfil.  ``arg_part``: which half of a reduction with an index it is.
    ``data_ranges``: of reduced iterators, beside ``bounds``.
    ``blocks``: the numbers of the blocks around it, outermost first; their iterators are the first in ``order``.
    """

    number: int
    name: str
    target: str
    subscripts: tuple[Expression, ...]
    reduction: Reduction | None
    initialize: bool
    value: Typed
    order: tuple[str, ...]
    reduced: tuple[str, ...]
    bounds: Mapping[str, Bounds]
    extents: Mapping[int, Expression]
    conditions: tuple[Expression, ...]
    requirements: tuple[tuple[Expression, Span | None], ...]
    required: tuple[Read, ...]
    distinct: tuple[Read, ...]
    places: Places
    origin: Origin
    arg_part: ArgPart | None = None
    data_ranges: tuple[DataRange, ...] = ()
    blocks: tuple[int, ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """The iterators of the blocks, outermost first."""
        return self.order[: len(self.blocks)]

    def expressions(self) -> Iterator[Expression]:
        """Every expression of the statement."""
        yield from self.subscripts
        yield self.value.expression
        for bounds in self.bounds.values():
            yield from (bounds.begin, bounds.end)
        yield from self.extents.values()
        for data in self.data_ranges:
            yield from (data.begin, data.end)
        yield from self.conditions
        yield from (condition for condition, _ in self.requirements)
        yield from self.required

    def reads(self) -> Iterator[GuardedRead]:
        """Every access that range inference takes into account, those of ``exists`` included."""
        for subscript in self.subscripts:
            yield from guarded_reads(subscript)
        yield from guarded_reads(self.value.expression)
        for data in self.data_ranges:
            yield from (*guarded_reads(data.begin), *guarded_reads(data.end))
        for required in self.required:
            yield from guarded_reads(required)

    def rebuilt(self, change: Callable[[Expression], Expression]) -> Draft:
        """The draft with ``change`` applied to every expression."""
        required = tuple(read for read in map(change, self.required) if isinstance(read, Read))
        return replace(
            self,
            subscripts=tuple(change(s) for s in self.subscripts),
            value=replace(self.value, expression=change(self.value.expression)),
            bounds={n: replace(b, begin=change(b.begin), end=change(b.end)) for n, b in self.bounds.items()},
            extents={dimension: change(extent) for dimension, extent in self.extents.items()},
            data_ranges=tuple(replace(d, begin=change(d.begin), end=change(d.end)) for d in self.data_ranges),
            conditions=tuple(change(c) for c in self.conditions),
            requirements=tuple((change(c), span) for c, span in self.requirements),
            required=required,
            distinct=tuple(read for read in map(change, self.distinct) if isinstance(read, Read)),
            places=replace(
                self.places,
                reads={r: s for read, s in self.places.reads.items() if isinstance(r := change(read), Read)},
            ),
        )


@frozen
class CallDraft:
    """A call of another definition.  ``tensors``: which tensor each of the callee's tensors stands for."""

    number: int
    callee: Program
    tensors: Mapping[str, str]
    scalars: Mapping[str, Expression]
    span: Span | None
    origin: Origin


Item: TypeAlias = Draft | CallDraft
