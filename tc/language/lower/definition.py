"""Lowers one definition: names, then values, then types, then ranges; what is in error is left out of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tc.base.errors import Span, nearest
from tc.base.types import ScalarType
from tc.grammar import syntax
from tc.language.algebra.polynomial import Atoms
from tc.language.check.blocks import Placed, placed_statements
from tc.language.check.call_statement import (
    Caller,
    ResolvedCall,
    draft_call,
    resolve_call,
    use_of_broken_call,
    use_of_call,
)
from tc.language.check.declarations import as_call, declare
from tc.language.check.declared_results import with_declared_extents, with_declared_results
from tc.language.check.held import Held, Inlining
from tc.language.check.uses import use_of_assign
from tc.language.check.value_types import TypedValues, ValueTyping
from tc.language.check.values import Use, Values, track_values
from tc.language.draft.draft import CallDraft, Item
from tc.language.draft.requirements import Requirements
from tc.language.lower.arg_preconditions import with_arg_preconditions
from tc.language.lower.assemble import Assembly, Head, SavedValue
from tc.language.lower.own_copies import with_own_copies
from tc.language.program.program import Program, Read, Statement, Tensor, TextOrigin
from tc.language.program.report import Report
from tc.language.prove.prove import prove_values, span_of
from tc.language.prove.written_before import come_in
from tc.language.ranges.ranges import Known, infer_ranges


def lower_definition(
    definition: syntax.Definition,
    callees: Mapping[str, Program | None],
    definitions: frozenset[str],
    source: str | None,
    held: Held,
    inlining: Inlining,
    report: Report,
) -> Program | None:
    """The program of a definition; None, with complaints in the report, if it is in error.

    ``callees``: the programs of the definitions that it calls; None for one in error, which is no complaint here.
    ``held``: how a caller has its arguments and results.  ``inlining``: gives the programs of callees for this caller.
    """
    own = Report()
    program = _Lowering(definition, callees, definitions, held, inlining, own).lower(source)
    report.extend(own)
    return None if own.count else program


class _Lowering:
    def __init__(
        self,
        definition: syntax.Definition,
        callees: Mapping[str, Program | None],
        definitions: frozenset[str],
        held: Held,
        inlining: Inlining,
        report: Report,
    ) -> None:
        self.definition = definition
        self.callees = callees
        self.held = held
        self.inlining = inlining
        self.report = report
        self.declarations = declare(definition, definitions, report)
        self.statements = placed_statements(definition)
        self.comprehensions: dict[int, Placed] = {}
        self.calls: dict[int, ResolvedCall] = {}
        self.atoms = Atoms(self.declarations.sizes, (scalar.name for scalar in self.declarations.scalars))

    def lower(self, source: str | None, coming: frozenset[str] = frozenset()) -> Program | None:
        """``coming``: results that blocks read before they write them, with values from outside."""
        uses = [self._use(number, placed) for number, placed in enumerate(self.statements)]
        declarations = self.declarations
        taken = {*declarations.names, *self.callees}
        inputs, results = declarations.inputs.keys(), declarations.results.keys()
        values = track_values(uses, inputs, results, taken, self.report, coming)
        self._check_results(values)
        typing = ValueTyping(
            self.comprehensions, self.calls, declarations, values, self.atoms, self.held, self.inlining
        )
        typed = typing.run(self.report)
        taken.update(version.tensor for version in values.versions)
        sizes = declarations.sizes
        drafts = (with_declared_extents(draft, self.definition, sizes) for draft in typed.drafts.values())
        items: list[Item] = [*drafts, *self._draft_calls(values, typing, typed, taken)]
        items.sort(key=lambda item: item.number)
        requirements = Requirements(self.atoms)
        ranges = infer_ranges(items, self._known(values, typed.failed), self.atoms, requirements, self.report)
        if self.report.count or None in self.callees.values():
            return None
        head = Head(
            self.definition.name,
            declarations.sizes,
            declarations.scalars,
            {name: self._as_held(tensor) for name, tensor in declarations.inputs.items()},
            declarations.arguments,
            tuple(declarations.results),
        )
        incoming = frozenset(version.name for version in values.versions if version.incoming)
        saved = [
            SavedValue(version.name, version.tensor, TextOrigin(declarations.results[version.name]))
            for version in values.saved
        ]
        assembly = Assembly(head, typed.types, incoming, saved, ranges, requirements, self.atoms)
        program = with_own_copies(assembly.program(items, source))
        late = come_in(program, values.assumed)
        if late:
            return self.lower(source, coming | late)
        places = {
            (progress.draft.origin, read): span
            for progress in ranges.resolved.values()
            for read, span in progress.draft.places.reads.items()
        }

        def place_of(statement: Statement, read: Read) -> Span | None:
            return places.get((statement.origin, read), span_of(statement.origin))

        prove_values(program, self.report, place_of=place_of)
        program = with_arg_preconditions(program, items, self.report)
        return with_declared_results(self.definition, program, typed.promoted, self.report)

    def _as_held(self, tensor: Tensor) -> Tensor:
        return replace(tensor, type=ScalarType.FLOAT32) if tensor.name in self.held.float32 else tensor

    # --- names -----------------------------------------------------------------------------------------------

    def _use(self, number: int, placed: Placed) -> Use:
        """Sorts a statement into comprehensions and calls; one in error is neither, and nothing is known of it."""
        scope, statement = self.declarations.scope, placed.statement
        call = as_call(statement, scope.tensors, scope.definitions)
        if call is not None:
            if placed.around:
                message = f"`{call.callee.name}` is called in a block, where each step would call it"
                self.report.error(message, call.span, "write its statements in its place")
                return use_of_broken_call(call)
            allowed = [self._check_target(result.name, result.span, None) for result in call.results]
            if not all(allowed):
                return Use({}, {}, ())
            resolved = resolve_call(call, self.callees, self.declarations, self.report)
            if resolved is None:
                return use_of_broken_call(call)
            self.calls[number] = resolved
            return use_of_call(resolved)
        assert isinstance(statement, syntax.Assign)
        if not self._check_target(statement.target, statement.target_span, len(statement.subscripts or ())):
            return Use({}, {}, ())
        self.comprehensions[number] = placed
        return use_of_assign(placed, scope)

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
        read = {name for versions in values.read for name in versions}
        unread = sorted(written - read - self.declarations.results.keys())
        for name, span in self.declarations.results.items():
            # A statement that is in error may have been meant to write it.
            if name not in written and name not in self.declarations.targets:
                guess = nearest(name, unread)
                meant = "" if guess is None else f"; did you mean it by `{guess}`, which is written and never read?"
                hint = f"write it, or drop it from the list{meant}"
                self.report.error(f"the result `{name}` is never written", span, hint)

    # --- calls -----------------------------------------------------------------------------------------------

    def _draft_calls(
        self, values: Values, typing: ValueTyping, typed: TypedValues, taken: set[str]
    ) -> Iterator[CallDraft]:
        for number, call in self.calls.items():
            views, written = typing.views(number, typed.promoted), values.written[number]
            caller = Caller(views, written, typed.promoted, self.declarations.scope, taken, self.report)
            draft = draft_call(number, call, typed.callees.get(number, call.callee), caller)
            if draft is None:
                typed.failed.add(number)
            else:
                yield draft

    # --- ranges ----------------------------------------------------------------------------------------------

    def _known(self, values: Values, failed: set[int]) -> Known:
        ranks: dict[str, int] = {}
        writers: dict[str, set[int]] = {}
        broken: set[str] = set()
        last = {version.name: version for version in values.versions}
        sound = {number for number in (*self.comprehensions, *self.calls) if number not in failed}
        for version in values.versions:
            ranks[version.tensor] = version.rank or 0
            # A value that came in has the shape of what goes out: it is the same array.
            for sharer in (version, last[version.name]) if version.incoming else (version,):
                writers.setdefault(version.tensor, set()).update(sharer.writers)
            if version.broken or not writers[version.tensor] or not sound.issuperset(writers[version.tensor]):
                broken.add(version.tensor)
        ordered = {tensor: sorted(numbers) for tensor, numbers in writers.items()}
        shapes = {name: tensor.shape for name, tensor in self.declarations.inputs.items()}
        blocked = frozenset(
            number for number, read in enumerate(values.read) if any(version.rank is None for version in read.values())
        )
        return Known(shapes, ranks, ordered, frozenset(broken), blocked, self.declarations.sizes)
