"""Puts the parts of a definition together: drafts with their ranges become the statements of a ``Program``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tc.language.calls import fresh_name, inlined_statements
from tc.language.declarations import Declarations
from tc.language.draft import CallDraft, Item
from tc.language.inference import Types
from tc.language.polynomial import Atoms
from tc.language.program import (
    INDEX_TYPE,
    DerivedOrigin,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Statement,
    Tensor,
    TextOrigin,
)
from tc.language.ranges import Ranges
from tc.language.report import Report
from tc.language.requirements import Requirements
from tc.language.rounds import Progress
from tc.language.typed import convert
from tc.language.values import Values
from tc.types import ScalarType


@dataclass(frozen=True, slots=True)
class Assembly:
    """Everything that is known about a definition without errors."""

    name: str
    declarations: Declarations
    values: Values
    types: Types
    ranges: Ranges
    requirements: Requirements
    atoms: Atoms
    report: Report

    def program(self, items: Sequence[Item], taken: Collection[str], source: str | None) -> Program:
        """The program; literals that do not fit the type of their tensor are reported."""
        declarations = self.declarations
        unnumbered = [*self._copies(taken), *(s for item in items for s in self._statements(item))]
        statements = tuple(replace(s, name=f"S{number}") for number, s in enumerate(unnumbered))
        return Program(
            name=self.name,
            sizes=declarations.sizes,
            scalars=declarations.scalars,
            tensors=self._tensors(statements),
            arguments=declarations.arguments,
            results=tuple(declarations.results),
            statements=statements,
            preconditions=self.requirements.preconditions,
            source=source,
        )

    def _statements(self, item: Item) -> Iterator[Statement]:
        if isinstance(item, CallDraft):
            names = self.declarations.scope
            tensors = {t for call in self.ranges.calls.values() for t in call.call.tensors.values()}
            taken = {*names.sizes, *names.scalars, *names.tensors, *self.types, *tensors}
            yield from inlined_statements(self.ranges.calls[item.number], taken)
        else:
            yield self._statement(self.ranges.resolved[item.number])

    def _statement(self, progress: Progress) -> Statement:
        draft = progress.draft
        for condition, span in draft.requirements:
            origin = draft.origin if span is None else TextOrigin(span)
            self.requirements.add(condition, "a condition of the `where` does not hold", origin)
        type = self.types[draft.target]
        assert type is not None
        return Statement(
            name="",
            iterators=tuple(self._iterator(name, progress) for name in draft.order),
            conditions=draft.conditions,
            target=draft.target,
            subscripts=draft.subscripts,
            reduction=draft.reduction,
            initialize=draft.initialize,
            value=convert(draft.value, type, self.report),
            required=draft.required,
            origin=draft.origin,
        )

    def _iterator(self, name: str, progress: Progress) -> IterationVariable:
        bounds = progress.draft.bounds.get(name)
        if bounds is not None:
            return IterationVariable(name, bounds.begin, bounds.end)
        interval = progress.intervals[name]
        return IterationVariable(name, self.atoms.expression(interval.begin), self.atoms.expression(interval.end))

    def _copies(self, taken: Collection[str]) -> Iterator[Statement]:
        """Saves values that came in through ``out=`` and are read after their storage is written."""
        for version in self.values.saved:
            shape = [self.atoms.expression(extent) for extent in self.ranges.shapes[version.name]]
            names: list[str] = []
            for _ in shape:
                names.append(fresh_name(f"i{len(names)}", {*taken, *names}))
            subscripts = tuple(IteratorReference(name) for name in names)
            type = self.types[version.name]
            assert type is not None
            first = self.ranges.resolved[version.writers[0]] if version.writers else None
            span = self.declarations.results[version.name] if first is None else first.draft.span
            yield Statement(
                name="",
                iterators=tuple(
                    IterationVariable(name, Literal(0, INDEX_TYPE), extent)
                    for name, extent in zip(names, shape, strict=True)
                ),
                conditions=(),
                target=version.tensor,
                subscripts=subscripts,
                reduction=None,
                initialize=False,
                value=Read(version.name, subscripts, type),
                required=(),
                origin=DerivedOrigin(
                    f"the value that `{version.name}` came in with is read after `{version.name}` is written",
                    TextOrigin(span if span is not None else self.declarations.results[version.name]),
                ),
            )

    def _tensors(self, statements: Sequence[Statement]) -> tuple[Tensor, ...]:
        """Arguments in their order, then the other tensors in the order of their first write."""
        incoming = {version.tensor for version in self.values.versions if version.incoming}
        tensors = list(self.declarations.inputs.values())
        written: dict[str, Statement] = {}
        for statement in statements:
            written.setdefault(statement.target, statement)
        callees = {
            call.call.tensors[t.name]: (t.type, call.extents[call.call.tensors[t.name]])
            for call in self.ranges.calls.values()
            for t in call.call.callee.tensors
            if t.role is not Role.INPUT
        }
        for name, statement in written.items():
            type: ScalarType | None
            if name in self.types:
                type, extents = self.types[name], self.ranges.shapes[name]
            else:
                type, extents = callees[name]
            assert type is not None
            role = Role.TEMPORARY
            if name in self.declarations.results:
                role = Role.IN_OUT if name in incoming else Role.OUTPUT
            shape = tuple(self.atoms.expression(extent) for extent in extents)
            tensors.append(Tensor(name, type, shape, role, statement.origin))
        return tuple(tensors)
