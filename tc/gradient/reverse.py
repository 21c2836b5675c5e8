"""Reverse mode over the statements of a definition: adjoints in push form, the last statement first.

What a statement reads gets, by each of its instances, the adjoint of what it writes times a partial derivative: ``d_x``
at the subscripts of the read is added to, over the iteration domain of the statement.  Compare FreeTensor (Tang et al.,
PLDI 2022, section 5), which derives the same for loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from functools import reduce
from typing import Final, assert_never

from tc.base.errors import Diagnostic, GradientError
from tc.base.types import ScalarType
from tc.gradient.images import is_everything, is_one_to_one
from tc.gradient.partials import Contribution, contributions
from tc.gradient.terms import adjoint_type, choice, compared, converted, is_number, number, over, plus, times
from tc.gradient.versions import Step
from tc.gradient.workspace import Workspace, moved
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Cast,
    DerivedOrigin,
    Expression,
    IteratorReference,
    Literal,
    Read,
    Reduction,
    Statement,
    Tensor,
    TextOrigin,
    Unary,
    iterators_in,
    reads_in,
)
from tc.language.program.written_elements import scatters, written_iterators


class Ties(Enum):
    """Who gets the adjoint of a maximum or minimum that several terms reach."""

    SPLIT = "split"  # all of them, in equal parts
    FIRST = "first"  # the one of the first instance


class Reverse:
    """The reverse sweep.

    ``adjoints``: the tensors of adjoints by tensor, of those that get some.  ``given``: arguments that adjoints begin
    with.
    """

    def __init__(
        self, workspace: Workspace, adjoints: Mapping[str, str], ties: Ties, given: Mapping[str, Tensor]
    ) -> None:
        self._workspace: Final = workspace
        self._adjoints: Final = adjoints
        self._ties: Final = ties
        self._given: Final = dict(given)
        self.statements: Final[list[Statement]] = []

    def visit(self, step: Step) -> None:
        """Adds the statements that belong to one of the forward."""
        statement = step.statement
        if statement.target not in self._adjoints:
            return
        if statement.blocks:
            raise refused(statement, "a recurrence (`for`) has no gradient yet")
        match statement.reduction:
            case None:
                self._assigned(step)
            case Reduction.ADD:
                self._push(step, self._contributions(step, self._adjoint(step)))
            case Reduction.MINIMUM | Reduction.MAXIMUM:
                self._chosen(step)
            case Reduction.MULTIPLY:
                self._multiplied(step)
            case _:
                assert_never(statement.reduction)

    def _assigned(self, step: Step) -> None:
        """``T = f(T, x)``: the adjoint of the value of ``T`` that was replaced takes the place of that of the new one."""
        statement, adjoint = step.statement, self._adjoint(step)
        updates = any(read.tensor == statement.target for read in reads_in(statement.value))
        found = self._contributions(step, adjoint, {} if updates else {step.kept(statement.value): self._after(step)})
        replaced = step.before.get(statement.target)
        self._push(step, (c for c in found if not updates or c.read.tensor != replaced))
        if updates:
            total: Expression = number(0, adjoint.type)
            for contribution in found:
                if contribution.read.tensor == replaced:
                    total = plus(total, self._guarded(contribution, adjoint.type))
            self._replace(step, total)

    def _chosen(self, step: Step) -> None:
        """``T max=! x``: to the terms that are the result."""
        statement, adjoint, after = step.statement, self._adjoint(step), self._after(step)
        value = step.kept(statement.value)
        is_chosen = compared(BinaryOperator.EQUAL, value, converted(after, value.type))
        before = Read(step.before[statement.target], statement.subscripts, after.type) if self._goes_on(step) else None
        goes_on = None if before is None else compared(BinaryOperator.EQUAL, before, after)
        match self._ties:
            case Ties.SPLIT:
                share, first = self._shares(step, is_chosen, goes_on, adjoint), is_chosen
            case Ties.FIRST:
                share, first = adjoint, self._is_first(step, is_chosen, goes_on)
            case _:
                assert_never(self._ties)
        found = self._contributions(step, share)
        self._push(step, (replace(c, guards=((first, True), *c.guards)) for c in found))
        if goes_on is not None:
            self._replace(step, choice(goes_on, share, number(0, adjoint.type)))

    def _shares(
        self, step: Step, is_chosen: Expression, goes_on: Expression | None, adjoint: Expression
    ) -> Expression:
        """The adjoint over how many terms are the result."""
        statement = step.statement
        one, zero = number(1, adjoint.type), number(0, adjoint.type)
        count = self._auxiliary(step, f"{statement.target}_ties", adjoint.type)
        if goes_on is not None:
            self._emit(step, count, choice(goes_on, one, zero), None, "terms that reach the result", reduced=False)
        is_new = goes_on is None
        self._emit(step, count, choice(is_chosen, one, zero), Reduction.ADD, "terms that reach the result", begins=is_new)
        return over(adjoint, count)

    def _is_first(self, step: Step, is_chosen: Expression, goes_on: Expression | None) -> Expression:
        """Whether an instance is the first one whose term is the result, in the order of the loops."""
        statement = step.statement
        written = {iterator.name for iterator in written_iterators(statement)}
        place: Expression = Literal(0, INDEX_TYPE)
        for iterator in statement.iterators:
            if iterator.name not in written:
                inner = iterator.end
                place = plus(_index(BinaryOperator.MULTIPLY, place, inner), IteratorReference(iterator.name))
        none = Literal(INDEX_TYPE.maximum, INDEX_TYPE)
        first = self._auxiliary(step, f"{statement.target}_first", INDEX_TYPE)
        if goes_on is not None:
            start = choice(goes_on, Literal(-1, INDEX_TYPE), none)
            self._emit(step, first, start, None, "the first term that is the result", reduced=False)
        is_new = goes_on is None
        own = choice(is_chosen, place, none)
        self._emit(step, first, own, Reduction.MINIMUM, "the first term that is the result", begins=is_new)
        return compared(BinaryOperator.EQUAL, place, first)

    def _multiplied(self, step: Step) -> None:
        """``T *=! x``: the product of the other terms, which is known without dividing by 0."""
        statement, adjoint = step.statement, self._adjoint(step)
        value = step.kept(statement.value)
        term = converted(value, adjoint.type)
        one, zero = number(1, adjoint.type), number(0, adjoint.type)
        is_zero = compared(BinaryOperator.EQUAL, term, zero)
        zeros = self._auxiliary(step, f"{statement.target}_zeros", adjoint.type)
        others = self._auxiliary(step, f"{statement.target}_others", adjoint.type)
        self._emit(step, zeros, choice(is_zero, one, zero), Reduction.ADD, "factors that are 0", begins=True)
        self._emit(step, others, choice(is_zero, one, term), Reduction.MULTIPLY, "product of the others", begins=True)
        whole = adjoint
        if self._goes_on(step):
            before = Read(step.before[statement.target], statement.subscripts, self._after(step).type)
            whole = times(adjoint, converted(before, adjoint.type))
        product = times(whole, others)
        none, single = compared(BinaryOperator.EQUAL, zeros, zero), compared(BinaryOperator.EQUAL, zeros, one)
        share = choice(is_zero, choice(single, product, zero), choice(none, over(product, term), zero))
        self._push(step, self._contributions(step, share))
        if self._goes_on(step):
            self._replace(step, choice(none, times(adjoint, others), zero))

    def _goes_on(self, step: Step) -> bool:
        return not step.statement.initialize

    def _adjoint(self, step: Step) -> Expression:
        """The adjoint of the element that an instance writes."""
        statement = step.statement
        own = self._adjoints[statement.target]
        found = self._given.get(own, self._workspace.tensors[own])
        type = adjoint_type(self._workspace.tensors[statement.target].type)
        subscripts = tuple(map(step.kept, statement.subscripts))
        return converted(Read(found.name, subscripts, found.type), type)

    def _after(self, step: Step) -> Read:
        """The element that an instance writes, behind the statement."""
        target = self._workspace.tensors[step.statement.target]
        return Read(step.after, tuple(map(step.kept, step.statement.subscripts)), target.type)

    def _contributions(
        self, step: Step, adjoint: Expression, known: Mapping[Expression, Expression] | None = None
    ) -> list[Contribution]:
        value = step.kept(step.statement.value)
        try:
            return contributions(value, converted(adjoint, adjoint_type(value.type)), self._active(step), known or {})
        except GradientError as error:
            raise refused(step.statement, error.diagnostics[0].message) from error

    def _active(self, step: Step) -> frozenset[str]:
        return frozenset(kept for tensor, kept in step.before.items() if tensor in self._adjoints)

    def _push(self, step: Step, found: Iterable[Contribution]) -> None:
        """Adds contributions to the adjoints of what was read."""
        tensors = {kept: tensor for tensor, kept in step.before.items()}
        for contribution in found:
            tensor = tensors[contribution.read.tensor]
            if not is_number(contribution.amount, 0):
                self._add(step, self._workspace.tensors[self._adjoints[tensor]].name, contribution)

    def _add(self, step: Step, target: str, contribution: Contribution) -> None:
        conditions = [_having(c, value) for c, value in contribution.guards if _is_static(c)]
        choosing = tuple(guard for guard in contribution.guards if not _is_static(guard[0]))
        self._begin(target)
        type = self._workspace.tensors[target].type
        amount = self._guarded(replace(contribution, guards=choosing), adjoint_type(type))
        # An index that is not read is not checked either.
        zero = Literal(0, INDEX_TYPE)
        subscripts = tuple(
            reduce(lambda inner, guard: choice(_having(*guard), inner, zero), reversed(choosing), subscript)
            if scatters(subscript)
            else subscript
            for subscript in contribution.read.subscripts
        )
        self.statements.append(
            replace(
                step.statement,
                conditions=(*step.statement.conditions, *conditions),
                target=target,
                subscripts=subscripts,
                reduction=Reduction.ADD,
                initialize=False,
                value=amount,
                required=(),
                distinct=(),
                origin=DerivedOrigin(f"adjoint of {contribution.read.tensor}", step.statement.origin),
            )
        )

    def _guarded(self, contribution: Contribution, type: ScalarType) -> Expression:
        zero = number(0, type)
        amount = converted(contribution.amount, type)
        return reduce(lambda inner, guard: choice(_having(*guard), inner, zero), reversed(contribution.guards), amount)

    def _replace(self, step: Step, value: Expression) -> None:
        """The adjoint of the value of the target that was replaced."""
        statement = step.statement
        target = self._workspace.tensors[self._adjoints[statement.target]]
        place = Read(target.name, tuple(map(step.kept, statement.subscripts)), target.type)
        if statement.reduction is not None or not is_one_to_one(statement) or not is_everything(statement, target):
            self._begin(target.name)
        self._given.pop(target.name, None)
        reason = f"adjoint of the value of {statement.target} that was replaced"
        self._emit(step, place, converted(value, target.type), None, reason, reduced=statement.reduction is None)

    def _begin(self, name: str) -> None:
        """Lets an adjoint begin with the argument that is given for it, if it has not yet."""
        given = self._given.pop(name, None)
        if given is not None:
            target = self._workspace.tensors[name]
            self.statements.append(moved(self._workspace, target, given, "adjoint of a result, to which is added"))

    def _auxiliary(self, step: Step, name: str, type: ScalarType) -> Read:
        """A new tensor with an element for each that the statement writes."""
        target = self._workspace.tensors[step.statement.target]
        declared = self._workspace.declare(name, type, target.shape, step.statement.origin)
        return Read(declared.name, tuple(map(step.kept, step.statement.subscripts)), type)

    def _emit(
        self,
        step: Step,
        target: Read,
        value: Expression,
        reduction: Reduction | None,
        reason: str,
        *,
        begins: bool = False,
        reduced: bool = True,
    ) -> None:
        """A statement over the iteration domain, or, if not ``reduced``, over the elements that are written."""
        statement = step.statement
        iterators = statement.iterators if reduced else written_iterators(statement)
        names = {iterator.name for iterator in iterators}
        conditions = tuple(c for c in statement.conditions if iterators_in((c,)) <= names)
        self.statements.append(
            replace(
                statement,
                iterators=iterators,
                conditions=conditions,
                target=target.tensor,
                subscripts=target.subscripts,
                reduction=reduction,
                initialize=begins,
                value=value,
                required=(),
                distinct=(),
                origin=DerivedOrigin(reason, statement.origin),
            )
        )


def _index(operator: BinaryOperator, left: Expression, right: Expression) -> Expression:
    return left if is_number(left, 0) else Binary(operator, left, right, INDEX_TYPE)


def _is_static(guard: Expression) -> bool:
    """Whether a condition may stand in a ``where``: it has iterators and reads nothing."""
    return bool(iterators_in((guard,))) and not any(True for _ in reads_in(guard))


def _having(condition: Expression, value: bool) -> Expression:
    if value:
        return condition
    return Unary(UnaryOperator.NOT, condition, ScalarType.BOOL)


def refused(statement: Statement, message: str) -> GradientError:
    """The error for a statement that has no derivative."""
    origin = statement.origin
    while isinstance(origin, DerivedOrigin):
        origin = origin.source
    return GradientError(Diagnostic(message, origin.span if isinstance(origin, TextOrigin) else None))
