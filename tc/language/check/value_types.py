"""The types of a definition's values: by promotion, then those in which tensors are held; and typed statements."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.grammar import syntax
from tc.language.algebra.polynomial import Atoms
from tc.language.check.blocks import Placed
from tc.language.check.call_statement import ResolvedCall
from tc.language.check.comprehension import check_comprehension
from tc.language.check.declarations import Declarations
from tc.language.check.held import AS_DECLARED, Held, Inlining, held_in_float32
from tc.language.check.inference import TypeInference, Types
from tc.language.check.scope import View
from tc.language.check.values import Values, Version
from tc.language.draft.draft import Draft
from tc.language.draft.typed import Strength, Typed, convert
from tc.language.program.program import Cast, Program
from tc.language.program.report import Report
from tc.language.program.terms import float32_term


@frozen
class TypedValues:
    """What is known of the types of a definition.

    ``promoted``: the types of all written tensors, as promotion gives them; ``types``: those that they are held in.
    ``drafts``: all sound comprehensions; ``failed``: the numbers of the others.  ``callees``: for every call, the
    program to be inlined.
    """

    promoted: Mapping[str, ScalarType]
    types: Mapping[str, ScalarType]
    drafts: Mapping[int, Draft]
    failed: set[int]
    callees: Mapping[int, Program]


class ValueTyping:
    """Types the statements of one definition, whose ``values`` are known.

    ``held``: how its caller has its arguments and results.  ``inlining``: gives the programs of callees.
    """

    def __init__(
        self,
        comprehensions: Mapping[int, Placed],
        calls: Mapping[int, ResolvedCall],
        declarations: Declarations,
        values: Values,
        atoms: Atoms,
        held: Held,
        inlining: Inlining,
    ) -> None:
        self._comprehensions = comprehensions
        self._calls = calls
        self._declarations = declarations
        self._values = values
        self._atoms = atoms
        self._held = held
        self._inlining = inlining
        # A value that came in has the type of what goes out, wherever it is kept.
        self._names = {version.tensor: version.name for version in values.saved}
        self._inputs = {
            name: View(name, tensor.type, len(tensor.shape), tensor.shape)
            for name, tensor in declarations.inputs.items()
        }

    def run(self, report: Report) -> TypedValues:
        """Types everything; what is wrong with the statements is reported."""
        inference = TypeInference(
            lambda number, types: self._check(number, types, frozenset()),
            {number: self._name(self._target(number)) for number in self._comprehensions},
            {
                number: [self._name(v.tensor) for v in self._values.read[number].values()]
                for number in self._comprehensions
            },
            self._types_of_calls(),
        )
        inference.settle()
        promoted = inference.settled_types()
        promoted.update({tensor: promoted[name] for tensor, name in self._names.items()})
        float32 = self._float32(promoted)
        for number in self._comprehensions:
            if float32 and not float32.isdisjoint(self._tensors(number)):
                inference.replace(number, *self._check(number, promoted, float32))
        failed = inference.report(report)
        types = {**promoted, **dict.fromkeys(float32 & promoted.keys(), ScalarType.FLOAT32)}
        drafts: dict[int, Draft] = {}
        for number, draft in inference.drafts.items():
            before = report.count
            if number not in failed:
                drafts[number] = _converted(draft, types[draft.target], report, held=draft.target in float32)
            if report.count > before:
                failed.add(number)
        sound = {number: draft for number, draft in drafts.items() if number not in failed}
        callees = {number: program for number in self._calls if (program := self._callee(number, float32)) is not None}
        return TypedValues(promoted, types, sound, failed, callees)

    def views(self, number: int, types: Types) -> dict[str, View]:
        """What the names of tensors mean at a statement, apart from those of whose values nothing is known."""
        own = {
            name: View(version.tensor, types.get(self._name(version.tensor)), version.rank, None)
            for name, version in self._values.read[number].items()
            if version.rank is not None
        }
        return {**self._inputs, **own}

    # --- statements ------------------------------------------------------------------------------------------

    def _name(self, tensor: str) -> str:
        return self._names.get(tensor, tensor)

    def _target(self, number: int) -> str:
        return self._values.written[number][self._assign(number).target].tensor

    def _assign(self, number: int) -> syntax.Assign:
        statement = self._comprehensions[number].statement
        assert isinstance(statement, syntax.Assign)
        return statement

    def _tensors(self, number: int) -> set[str]:
        """Those that a comprehension writes and reads."""
        return {self._target(number), *self._reads(number)}

    def _reads(self, number: int) -> set[str]:
        # Arguments may be read anywhere: they are held in float32 only where a caller holds them so.
        return {*self._held.float32, *(version.tensor for version in self._values.read[number].values())}

    def _check(self, number: int, types: Types, float32: Set[str]) -> tuple[Draft, Report]:
        """The draft of a comprehension where some halves are held in float32."""
        target = self._target(number)

        def view(promoted: View) -> View:
            if promoted.type is None or not promoted.type.is_half:
                return promoted
            if promoted.tensor in float32:
                return replace(promoted, type=ScalarType.FLOAT32)
            return replace(promoted, wanted=ScalarType.FLOAT32) if target in float32 else promoted

        report = Report()
        views = {name: view(promoted) for name, promoted in self.views(number, types).items()}
        statement, scope = self._comprehensions[number], self._declarations.scope
        return check_comprehension(number, statement, target, scope, views, self._atoms, report), report

    # --- calls -----------------------------------------------------------------------------------------------

    def _types_of_calls(self) -> dict[str, list[ScalarType]]:
        types: dict[str, list[ScalarType]] = {}
        for number, call in self._calls.items():
            for result, version in self._results(number).items():
                types.setdefault(self._name(version.tensor), []).append(call.callee.tensor(result).type)
        return types

    def _results(self, number: int) -> dict[str, Version]:
        """The caller's values by the callee's names."""
        call, written = self._calls[number], self._values.written[number]
        return {r: written[name] for r, name in zip(call.callee.results, call.results, strict=True)}

    def _callee(self, number: int, float32: Set[str]) -> Program | None:
        """What is inlined for a call where some halves are held in float32."""
        call, read, results = self._calls[number], self._values.read[number], self._results(number)
        tensors = {
            parameter: read[name].tensor if name in read else name for parameter, (name, _) in call.tensors.items()
        }
        tensors.update((result, version.tensor) for result, version in results.items())
        halves = {name: tensor for name, tensor in tensors.items() if call.callee.tensor(name).type.is_half}
        held = Held(
            frozenset(name for name, tensor in halves.items() if tensor in float32),
            frozenset(name for name, tensor in halves.items() if name in results and self._is_temporary(tensor)),
        )
        return call.callee if held == AS_DECLARED else self._inlining(call.callee.name, held)

    # --- halves ----------------------------------------------------------------------------------------------

    def _is_temporary(self, tensor: str) -> bool:
        return tensor not in self._declarations.results or tensor in self._held.temporaries

    def _float32(self, types: Mapping[str, ScalarType]) -> frozenset[str]:
        """The tensors that are halves by promotion, and are held in float32."""
        halves = {tensor for tensor, type in types.items() if type.is_half and self._is_temporary(tensor)}
        reduced = {
            target
            for number in self._comprehensions
            if self._assign(number).assignment is not syntax.Assignment.SET
            and (target := self._target(number)) in halves
        }

        def written(float32: Set[str]) -> set[str]:
            found: set[str] = set()
            for number in self._comprehensions:
                if self._target(number) in halves - float32 and not float32.isdisjoint(self._reads(number)):
                    draft, _ = self._check(number, types, float32)
                    if draft.value.type is ScalarType.FLOAT32:
                        found.add(draft.target)
            for number in self._calls:
                callee = self._callee(number, float32) if halves else None
                for result, version in self._results(number).items():
                    if callee is not None and callee.tensor(result).type is ScalarType.FLOAT32:
                        found.add(version.tensor)
            return found

        return held_in_float32(reduced | self._held.float32, halves, written)


def _converted(draft: Draft, type: ScalarType, report: Report, *, held: bool) -> Draft:
    """The draft with its value in the type of the target.  ``held``: as float32, though it is a half."""
    value: Typed = draft.value
    expression = value.expression
    if held and draft.reduction is not None and isinstance(expression, Cast) and expression.type.is_half:
        value = replace(value, expression=float32_term(expression))
    return replace(draft, value=replace(value, expression=convert(value, type, report), strength=Strength.STRONG))
