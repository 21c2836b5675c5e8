"""One program of several calls whose operands have known sizes: what lowering a definition that makes them gives.

The definition need not be written, parsed and checked: the programs that it calls were, and their statements follow
each other, with numbers for their sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.algebra.polynomial import Atoms, constant
from tc.language.algebra.rewriting import fresh_name
from tc.language.draft.draft import CallDraft
from tc.language.draft.requirements import Requirements
from tc.language.lower.assemble import Assembly, Head
from tc.language.lower.own_copies import with_own_copies
from tc.language.program.program import INDEX_TYPE, Literal, Program, Role, Tensor
from tc.language.program.report import Report
from tc.language.ranges.calls import BoundCall, bind_call
from tc.language.ranges.range_errors import RangeErrors
from tc.language.ranges.ranges import Ranges


@frozen
class Operand:
    """An argument of the whole."""

    name: str
    type: ScalarType
    shape: tuple[int, ...]


@frozen
class ProgramCall:
    """A program, and what it takes and makes, each by its name in the whole."""

    program: Program
    operands: tuple[str, ...]
    results: tuple[str, ...]


def compose_calls(
    name: str, operands: Sequence[Operand], calls: Sequence[ProgramCall], results: Sequence[str]
) -> Program | None:
    """The program of the calls in order; None where only a definition says what is meant.

    That is so for halves, which callers hold in float32, for scalars, for results that come in, and where operands do
    not fit, or may not.
    """
    if any(_needs_definition(call.program) for call in calls):
        return None
    composing = _Composing(operands, calls, results)
    return composing.program(name) if all(map(composing.add, calls)) else None


def _needs_definition(program: Program) -> bool:
    tensors = program.tensors
    return bool(program.scalars) or any(tensor.type.is_half or tensor.role is Role.IN_OUT for tensor in tensors)


class _Composing:
    def __init__(self, operands: Sequence[Operand], calls: Sequence[ProgramCall], results: Sequence[str]) -> None:
        self._operands: Final = {operand.name: operand for operand in operands}
        self._results: Final = tuple(results)
        self._atoms: Final = Atoms()
        self._report: Final = Report()
        self._requirements: Final = Requirements(self._atoms)
        self._shapes: Final = {one.name: tuple(map(constant, one.shape)) for one in operands}
        self._errors: Final = RangeErrors(self._atoms, (), dict(self._shapes), self._report)
        self._types: Final = {operand.name: operand.type for operand in operands}
        self._inputs: Final[dict[str, Tensor]] = {}
        self._taken: Final = {*self._shapes, *results, *(made for call in calls for made in call.results)}
        self._calls: Final[list[BoundCall]] = []

    def add(self, call: ProgramCall) -> bool:
        """Another call; whether its operands surely fit."""
        callee = call.program
        names = dict(zip(callee.arguments, call.operands, strict=True))
        for parameter, own in names.items():
            tensor = callee.tensor(parameter)
            if self._types.get(own) is not tensor.type or len(self._shapes[own]) != len(tensor.shape):
                return False
            if own in self._operands:
                self._inputs.setdefault(own, self._input(own, tensor))
        shapes = {parameter: self._shapes[own] for parameter, own in names.items()}
        names |= zip(callee.results, call.results, strict=True)
        for tensor in callee.tensors:
            if tensor.role is Role.TEMPORARY:
                names[tensor.name] = fresh_name(tensor.name, self._taken)
                self._taken.add(names[tensor.name])
        draft = CallDraft(len(self._calls), callee, names, {}, None, callee.statements[0].origin)
        bound = bind_call(draft, shapes, self._atoms, self._requirements, self._errors)
        if bound is None or self._report.count or self._requirements.preconditions:
            return False
        self._calls.append(bound)
        self._shapes.update({own: bound.extents[own] for own in call.results})
        self._types.update({names[result]: callee.tensor(result).type for result in callee.results})
        return True

    def program(self, name: str) -> Program:
        """The whole."""
        inputs = {own: self._inputs[own] for own in self._operands}
        head = Head(name, (), (), inputs, tuple(inputs), self._results)
        written = {own: type for own, type in self._types.items() if own not in inputs}
        ranges = Ranges({}, {bound.call.number: bound for bound in self._calls}, self._shapes)
        assembly = Assembly(head, written, frozenset(), (), ranges, self._requirements, self._atoms)
        return with_own_copies(assembly.program([bound.call for bound in self._calls], None))

    def _input(self, name: str, parameter: Tensor) -> Tensor:
        extents = tuple(Literal(extent, INDEX_TYPE) for extent in self._operands[name].shape)
        return Tensor(name, parameter.type, extents, Role.INPUT, parameter.origin)
