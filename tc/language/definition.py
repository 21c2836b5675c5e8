"""Lowers one definition: names, then values, then types, then ranges; what is in error is left out of the rest."""

from __future__ import annotations

from collections.abc import Mapping

from tc.errors import Span
from tc.grammar import syntax
from tc.language.assemble import Assembly
from tc.language.call_statement import ResolvedCall, draft_call, resolve_call, use_of_broken_call, use_of_call
from tc.language.comprehension import check_comprehension
from tc.language.declarations import as_call, declare
from tc.language.draft import Draft, Item
from tc.language.inference import TypeInference, Types
from tc.language.polynomial import Atoms
from tc.language.program import Program, SizeReference
from tc.language.prove import prove_values
from tc.language.ranges import Known, infer_ranges
from tc.language.report import Report
from tc.language.requirements import Requirements
from tc.language.scope import View
from tc.language.uses import use_of_assign
from tc.language.values import Use, Values, Version, track_values
from tc.types import ScalarType


def lower_definition(
    definition: syntax.Definition,
    callees: Mapping[str, Program | None],
    definitions: frozenset[str],
    source: str | None,
    report: Report,
) -> Program | None:
    """The program of a definition; None, with complaints in the report, if it is in error.

    ``callees``: the programs of the definitions that it calls; None for one in error, which is no complaint here.
    """
    own = Report()
    program = _Lowering(definition, callees, definitions, own).lower(source)
    report.extend(own)
    return None if own.count else program


class _Lowering:
    def __init__(
        self,
        definition: syntax.Definition,
        callees: Mapping[str, Program | None],
        definitions: frozenset[str],
        report: Report,
    ) -> None:
        self.definition = definition
        self.callees = callees
        self.report = report
        self.declarations = declare(definition, definitions, report)
        self.comprehensions: dict[int, syntax.Assign] = {}
        self.calls: dict[int, ResolvedCall] = {}
        self.atoms = Atoms()
        for size in self.declarations.sizes:
            self.atoms.number(SizeReference(size))

    def lower(self, source: str | None) -> Program | None:
        uses = [self._use(number, statement) for number, statement in enumerate(self.definition.statements)]
        declarations = self.declarations
        taken = {*declarations.names, *self.callees}
        values = track_values(uses, declarations.inputs.keys(), declarations.results.keys(), taken, self.report)
        self._check_results(values)
        inference, failed = self._infer_types(values)
        items: list[Item] = [draft for number, draft in inference.drafts.items() if number not in failed]
        taken.update(version.tensor for version in values.versions)
        for number, call in self.calls.items():
            draft = draft_call(number, call, values, declarations, inference.types, taken, self.report)
            if draft is None:
                failed.add(number)
            else:
                items.append(draft)
        items.sort(key=lambda item: item.number)
        requirements = Requirements(self.atoms)
        ranges = infer_ranges(items, self._known(values, failed), self.atoms, requirements, self.report)
        if self.report.count or any(callee is None for callee in self.callees.values()):
            return None
        program = Assembly(
            self.definition.name, declarations, values, inference.types, ranges, requirements, self.atoms, self.report
        ).program(items, taken, source)
        if self.report.count:
            return None
        prove_values(program, self.report)
        return program

    # --- names -----------------------------------------------------------------------------------------------

    def _use(self, number: int, statement: syntax.Statement) -> Use:
        """Sorts a statement into comprehensions and calls; one in error is neither, and writes nothing known."""
        scope = self.declarations.scope
        call = as_call(statement, self.definition, self.declarations.scope.definitions)
        if call is not None:
            targets, rank = [(result.name, result.span) for result in call.results], None
        else:
            assert isinstance(statement, syntax.Assign)
            targets, rank = [(statement.target, statement.target_span)], len(statement.subscripts or ())
        allowed = [self._check_target(name, span, rank) for name, span in targets]
        if not all(allowed):
            return Use({}, {}, ())
        if call is None:
            assert isinstance(statement, syntax.Assign)
            self.comprehensions[number] = statement
            return use_of_assign(statement, scope)
        resolved = resolve_call(call, self.callees, self.declarations, self.report)
        if resolved is None:
            return use_of_broken_call(targets)
        self.calls[number] = resolved
        return use_of_call(resolved)

    def _check_target(self, name: str, span: Span, rank: int | None) -> bool:
        declarations = self.declarations
        if name in declarations.inputs:
            self.report.error(
                f"`{name}` is an argument, and arguments are never written",
                span,
                "write to another name, or drop the argument and list the name among the results: a result that "
                "is read before it is written comes in through `out=`",
            )
        elif name in declarations.scope.scalars:
            self.report.error(f"`{name}` is a scalar argument and cannot be written", span, "write to another name")
        elif name in declarations.scope.sizes and rank == 0:
            self.report.error(f"`{name}` is a size and cannot be written", span, "write to another name")
        else:
            return True
        return False

    def _check_results(self, values: Values) -> None:
        written = {version.name for version in values.versions if version.writers}
        for name, span in self.declarations.results.items():
            if name not in written:
                self.report.error(f"the result `{name}` is never written", span, "write it, or drop it from the list")

    # --- types -----------------------------------------------------------------------------------------------

    def _infer_types(self, values: Values) -> tuple[TypeInference, set[int]]:
        inputs = {
            name: View(name, tensor.type, len(tensor.shape), tensor.shape)
            for name, tensor in self.declarations.inputs.items()
        }
        saved = {version: version.name for version in values.saved}
        targets: dict[int, str] = {}
        reads: dict[int, list[str]] = {}
        for number, statement in self.comprehensions.items():
            version = values.written[number][statement.target]
            targets[number] = saved.get(version, version.tensor)
            reads[number] = [saved.get(v, v.tensor) for v in values.read[number].values()]
        fixed: dict[str, list[ScalarType]] = {}
        for number, call in self.calls.items():
            for result, name in zip(call.callee.results, call.results, strict=True):
                tensor = values.written[number][name].tensor
                fixed.setdefault(tensor, []).append(call.callee.tensor(result).type)

        def view(version: Version, types: Types) -> View | None:
            if version.rank is None:
                return None
            return View(version.tensor, types.get(saved.get(version, version.tensor)), version.rank, None)

        def check(number: int, types: Types) -> tuple[Draft, Report]:
            statement = self.comprehensions[number]
            found = {name: view(version, types) for name, version in values.read[number].items()}
            views = {**inputs, **{name: v for name, v in found.items() if v is not None}}
            target = values.written[number][statement.target].tensor
            report = Report()
            draft = check_comprehension(number, statement, target, self.declarations.scope, views, self.atoms, report)
            return draft, report

        inference = TypeInference(check, targets, reads, fixed)
        failed = inference.run(self.report)
        for version in values.saved:
            inference.types[version.tensor] = inference.types[version.name]
        return inference, failed

    # --- ranges ----------------------------------------------------------------------------------------------

    def _known(self, values: Values, failed: set[int]) -> Known:
        ranks: dict[str, int] = {}
        writers: dict[str, list[int]] = {}
        broken: set[str] = set()
        last = {version.name: version for version in values.versions}
        for version in values.versions:
            ranks[version.tensor] = version.rank or 0
            # A value that came in has the shape of what goes out: it is the same array.
            sharing = [version, last[version.name]] if version.incoming else [version]
            for sharer in sharing:
                writers.setdefault(version.tensor, []).extend(sharer.writers)
            unwritten = not version.writers and not version.incoming
            if version.broken or unwritten or not failed.isdisjoint(version.writers):
                broken.add(version.tensor)
        written = {number for number in (*self.comprehensions, *self.calls) if number not in failed}
        ordered = {tensor: sorted(set(numbers)) for tensor, numbers in writers.items()}
        broken.update(tensor for tensor, numbers in ordered.items() if not written.issuperset(numbers))
        shapes = {name: tensor.shape for name, tensor in self.declarations.inputs.items()}
        return Known(shapes, ranks, ordered, frozenset(broken), self.declarations.sizes)
