"""Reverse mode over the statements of a definition: adjoints in push form, the last statement first.

What a statement reads gets, by each of its instances, the adjoint of what it writes times a partial derivative: ``d_x``
at the subscripts of the read is added to, over the iteration domain of the statement.  Compare FreeTensor (Tang et al.,
PLDI 2022, section 5), which derives the same for loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import reduce
from typing import Final, assert_never

from tc.base.errors import GradientError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.gradient.images import is_everything, is_one_to_one, reaches_all
from tc.gradient.partials import Contribution, contributions
from tc.gradient.refusal import refused
from tc.gradient.terms import adjoint_type, choice, compared, converted, is_number, number, over, plus, times
from tc.gradient.ties import Ties
from tc.gradient.versions import Step
from tc.gradient.workspace import Workspace, filled, moved
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.algebra.fold import fold_constants
from tc.language.algebra.rewriting import map_statement
from tc.language.draft.rules import is_piecewise_affine
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    DerivedOrigin,
    Expression,
    InRange,
    IteratorReference,
    Literal,
    Read,
    Reduction,
    Statement,
    Tensor,
    Unary,
    in_terms_of,
    iterators_in,
    reads_in,
    rebuild,
    walk,
)
from tc.language.program.within import neutral_element
from tc.language.program.written_elements import over_elements, scatters, written_iterators


class Reverse:
    """The reverse sweep.

    ``adjoints``: the tensors of adjoints by tensor, of those that get some; others where values were replaced.
    ``given``: arguments that adjoints begin with.  ``saving``: values of the forward are at hand, and read rather than
    computed from others.
    """

    def __init__(
        self,
        workspace: Workspace,
        adjoints: Mapping[str, str],
        ties: Ties,
        given: Mapping[str, Tensor],
        *,
        saving: bool = False,
    ) -> None:
        self._workspace: Final = workspace
        self.adjoints: Final = dict(adjoints)
        self._ties: Final = ties
        self._saving: Final = saving
        self._given: Final = dict(given)
        self.statements: Final[list[Statement]] = []
        self._blocks = max((n for s in workspace.program.statements for n in s.blocks), default=-1)

    def visit(self, step: Step) -> None:
        """Adds the statements that belong to one of the forward."""
        statement = step.statement
        if statement.target not in self.adjoints:
            return
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

    def visit_block(self, steps: Sequence[Step]) -> None:
        """Adds the statements that belong to a block of the forward: a block that runs from its last step to the first.

        What its statements do not read themselves comes behind it, without order.
        """
        for tensor in sorted({tensor for step in steps for tensor in (*step.before, step.statement.target)}):
            if tensor in self.adjoints:
                self._begin(self.adjoints[tensor])
        start = len(self.statements)
        for step in steps:
            self.visit(step)
        made = self.statements[start:]
        del self.statements[start:]
        outside = [statement for statement in made if not statement.blocks]
        inside = [statement for statement in made if statement.blocks]
        needed = {read.tensor for s in inside for e in (s.value, *s.subscripts) for read in reads_in(e)}
        self.statements.extend(outside)
        numbers = {
            number: self._blocks + 1 + n for n, number in enumerate(sorted({b for s in inside for b in s.blocks}))
        }
        self._blocks += len(numbers)
        self.statements.extend(_backwards(s, numbers) for s in inside if s.target in needed)
        self.statements.extend(replace(s, blocks=()) for s in inside if s.target not in needed)

    def _assigned(self, step: Step) -> None:
        """``T = f(T, x)``: the adjoint of the value that was replaced takes the place of that of the new one."""
        statement, adjoint = step.statement, self._adjoint(step)
        # In a block, a statement reads what other steps have written.
        updates = not statement.blocks and any(r.tensor == statement.target for r in reads_in(statement.value))
        stored = step.lasts and (self._saving or not updates)
        known = {step.kept(statement.value): self._after(step)} if stored else {}
        found = self._contributions(step, adjoint, known)
        replaced = step.before.get(statement.target)
        self._push(step, (c for c in found if not updates or c.read.tensor != replaced))
        if updates:
            total: Expression = number(0, adjoint.type)
            for contribution in found:
                if contribution.read.tensor == replaced:
                    total = plus(total, self._guarded(contribution, adjoint.type))
            self._replace(step, lambda here: _moved_to(total, adjoint, here.adjoint), elements=False)

    def _chosen(self, step: Step) -> None:
        """``T max=! x``: to the terms that are the result."""
        adjoint, after = self._adjoint(step), self._after(step)
        value = step.kept(step.statement.value)
        is_chosen = compared(BinaryOperator.EQUAL, value, converted(after, value.type))
        count: Read | None = None
        match self._ties:
            case Ties.SPLIT:
                count = self._count(step, is_chosen)
                share, first = over(adjoint, count), is_chosen
            case Ties.FIRST:
                share, first = adjoint, self._is_first(step, is_chosen)
            case _:
                assert_never(self._ties)
        found = self._contributions(step, share)
        self._push(step, (replace(c, guards=((first, True), *c.guards)) for c in found))
        if self._goes_on(step):

            def replaced(here: _Here) -> Expression:
                whole = here.adjoint
                part = whole if count is None else over(whole, here.at(count.tensor, count.type))
                return choice(here.is_kept, part, number(0, whole.type))

            self._replace(step, replaced, elements=True)

    def _count(self, step: Step, is_chosen: Expression) -> Read:
        """How many terms are the result."""
        type = self._adjoint(step).type
        one, zero = number(1, type), number(0, type)
        count = self._auxiliary(step, f"{step.statement.target}_ties", type)
        start = (lambda here: choice(here.is_kept, one, zero)) if self._goes_on(step) else None
        self._gather(step, count, choice(is_chosen, one, zero), Reduction.ADD, start, "terms that reach the result")
        return count

    def _is_first(self, step: Step, is_chosen: Expression) -> Expression:
        """Whether an instance is the first one whose term is the result, in the order of the loops."""
        statement = step.statement
        written = {iterator.name for iterator in written_iterators(statement)}
        place: Expression = Literal(0, INDEX_TYPE)
        for iterator in statement.iterators:
            if iterator.name not in written:
                place = plus(_scaled(place, iterator.end), IteratorReference(iterator.name))
        none = Literal(INDEX_TYPE.maximum, INDEX_TYPE)
        before = Literal(-1, INDEX_TYPE)
        first = self._auxiliary(step, f"{statement.target}_first", INDEX_TYPE)
        start = (lambda here: choice(here.is_kept, before, none)) if self._goes_on(step) else None
        reason = "the first term that is the result"
        self._gather(step, first, choice(is_chosen, place, none), Reduction.MINIMUM, start, reason)
        return compared(BinaryOperator.EQUAL, place, first)

    def _multiplied(self, step: Step) -> None:
        """``T *=! x``: the product of the other terms, which is known without dividing by 0."""
        statement, adjoint = step.statement, self._adjoint(step)
        term = converted(step.kept(statement.value), adjoint.type)
        one, zero = number(1, adjoint.type), number(0, adjoint.type)
        is_zero = compared(BinaryOperator.EQUAL, term, zero)
        zeros = self._auxiliary(step, f"{statement.target}_zeros", adjoint.type)
        others = self._auxiliary(step, f"{statement.target}_others", adjoint.type)
        self._gather(step, zeros, choice(is_zero, one, zero), Reduction.ADD, None, "factors that are 0")
        self._gather(step, others, choice(is_zero, one, term), Reduction.MULTIPLY, None, "product of the others")
        product = times(adjoint, others)
        if self._goes_on(step):
            before = Read(step.before[statement.target], self._after(step).subscripts, self._after(step).type)
            product = times(product, converted(before, adjoint.type))
        none, single = compared(BinaryOperator.EQUAL, zeros, zero), compared(BinaryOperator.EQUAL, zeros, one)
        share = choice(is_zero, choice(single, product, zero), choice(none, over(product, term), zero))
        self._push(step, self._contributions(step, share))
        if self._goes_on(step):

            def replaced(here: _Here) -> Expression:
                is_none = compared(BinaryOperator.EQUAL, here.at(zeros.tensor, zeros.type), zero)
                return choice(is_none, times(here.adjoint, here.at(others.tensor, others.type)), zero)

            self._replace(step, replaced, elements=True)

    def _goes_on(self, step: Step) -> bool:
        return not step.statement.initialize

    def _adjoint(self, step: Step) -> Expression:
        """The adjoint of the element that an instance writes."""
        return self._here(step, elements=False)[1].adjoint

    def _after(self, step: Step) -> Read:
        """The element that an instance writes, behind the statement."""
        target = self._workspace.tensors[step.statement.target]
        return Read(step.after, tuple(map(step.kept, step.statement.subscripts)), target.type)

    def _contributions(
        self, step: Step, adjoint: Expression, known: Mapping[Expression, Expression] | None = None
    ) -> list[Contribution]:
        value = step.kept(step.statement.value)
        try:
            own = converted(adjoint, adjoint_type(value.type))
            return contributions(value, own, self._active(step), known or {}, saving=self._saving)
        except GradientError as error:
            raise refused(step.statement, error.diagnostics[0].message) from error

    def _active(self, step: Step) -> frozenset[str]:
        return frozenset(kept for tensor, kept in step.before.items() if tensor in self.adjoints)

    def _push(self, step: Step, found: Iterable[Contribution]) -> None:
        """Adds contributions to the adjoints of what was read."""
        tensors = {kept: tensor for tensor, kept in step.before.items()}
        for contribution in found:
            tensor = tensors[contribution.read.tensor]
            if not is_number(contribution.amount, 0):
                self._add(step, self._workspace.tensors[self.adjoints[tensor]].name, contribution)

    def _add(self, step: Step, target: str, contribution: Contribution) -> None:
        self._begin(target)
        fixed = [guard for guard in contribution.guards if _is_static(guard[0])]
        choosing = tuple(guard for guard in contribution.guards if not _is_static(guard[0]))
        type = self._workspace.tensors[target].type
        amount = self._guarded(replace(contribution, guards=choosing), adjoint_type(type))
        ranged = ranged_iterators(condition for condition, _ in choosing)
        subscripts = (self._index(step, subscript, ranged) for subscript in contribution.read.subscripts)
        place = Read(target, tuple(_inside(subscript, choosing) for subscript in subscripts), type)
        made = _like(step.statement, place, amount, Reduction.ADD, f"adjoint of {contribution.read.tensor}")
        conditions = (_having(condition, value) for condition, value in fixed)
        self.statements.append(replace(made, conditions=(*made.conditions, *conditions)))

    def _index(self, step: Step, subscript: Expression, ranged: AbstractSet[str]) -> Expression:
        """A subscript as a left-hand side may have it: read from a tensor, if it is not affine, or chosen by data."""
        own = iterators_in((subscript,))
        if scatters(subscript) or (is_piecewise_affine(subscript) and own.isdisjoint(ranged)):
            return subscript
        iterators = [iterator for iterator in step.statement.iterators if iterator.name in own]
        if iterators_in(iterator.end for iterator in iterators):
            raise refused(step.statement, "a subscript that is not affine has no gradient in ranges of other iterators")
        shape = tuple(iterator.end for iterator in iterators)
        name = "_".join(("at", *(iterator.name for iterator in iterators)))
        tensor = self._workspace.declare(name, INDEX_TYPE, shape, step.statement.origin)
        values = {iterator.name: number for number, iterator in enumerate(iterators)}

        def value(places: tuple[Expression, ...]) -> Expression:
            return in_terms_of(subscript, {name: places[number] for name, number in values.items()})

        self.statements.append(filled(self._workspace, tensor, value, "a subscript that data choose"))
        return Read(tensor.name, tuple(IteratorReference(iterator.name) for iterator in iterators), INDEX_TYPE)

    def _guarded(self, contribution: Contribution, type: ScalarType) -> Expression:
        zero = number(0, type)
        amount = converted(contribution.amount, type)
        return reduce(lambda inner, guard: choice(_having(*guard), inner, zero), reversed(contribution.guards), amount)

    def _replace(self, step: Step, value: Callable[[_Here], Expression], *, elements: bool) -> None:
        """Begins the adjoint of the value of the target that a step replaced.

        ``elements``: not for each instance, but for each element that these may write.
        """
        target = step.statement.target
        reason = f"adjoint of the value of {target} that is replaced"
        own, here = self._here(step, elements=elements)
        new = self._workspace.declare(f"d_{target}", here.source.type, here.source.shape, step.statement.origin)
        if not (is_one_to_one(own) and is_everything(own, self._workspace.tensors[target])):
            self.statements.append(moved(self._workspace, new, here.source, reason))
            here = replace(here, source=new)
        place = here.at(new.name, new.type)
        self.statements.append(_like(own, place, converted(value(here), new.type), None, reason))
        self._given.pop(self.adjoints[target], None)
        self.adjoints[target] = new.name

    def _here(self, step: Step, *, elements: bool) -> tuple[Statement, _Here]:
        """A statement for each instance of a step or for each element, and the element of its target there."""
        target = self._workspace.tensors[step.statement.target]
        own = over_elements(step.statement, target.shape) if elements else step.statement
        subscripts = own.subscripts if elements else tuple(map(step.kept, own.subscripts))
        before = step.before.get(target.name, target.name)
        return own, _Here(subscripts, self._source(target.name), before, step.after, target.type)

    def _source(self, tensor: str) -> Tensor:
        """Where the adjoint of a tensor is: in an argument, as long as nothing was added to it."""
        own = self.adjoints[tensor]
        return self._given.get(own, self._workspace.tensors[own])

    def _gather(
        self,
        step: Step,
        target: Read,
        term: Expression,
        reduction: Reduction,
        start: Callable[[_Here], Expression] | None,
        reason: str,
    ) -> None:
        """A reduction over the instances of a step into a new tensor, together with ``start`` of each element."""
        own = self._workspace.tensors[target.tensor]
        made = [_like(step.statement, target, term, reduction, reason)]
        if start is not None:
            elements, here = self._here(step, elements=True)
            made.insert(0, _like(elements, here.at(own.name, own.type), start(here), reduction, reason))
        if step.statement.blocks or reaches_all(made[0], own, self._workspace.program):
            made[0] = replace(made[0], initialize=True) if start is None else replace(made[0], reduction=None)
        else:
            neutral = neutral_element(reduction, own.type)
            made.insert(0, filled(self._workspace, own, lambda _: neutral, reason))
        self.statements.extend(made)

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


@frozen
class _Here:
    """One element of the target of a step: its adjoint, and its value before and behind the step."""

    subscripts: tuple[Expression, ...]
    source: Tensor
    before: str
    after: str
    type: ScalarType

    def at(self, tensor: str, type: ScalarType) -> Read:
        """The same element of another tensor."""
        return Read(tensor, self.subscripts, type)

    @property
    def adjoint(self) -> Expression:
        return converted(self.at(self.source.name, self.source.type), adjoint_type(self.type))

    @property
    def is_kept(self) -> Expression:
        """Whether the value is still what it was."""
        return compared(BinaryOperator.EQUAL, self.at(self.before, self.type), self.at(self.after, self.type))


def _like(statement: Statement, target: Read, value: Expression, reduction: Reduction | None, reason: str) -> Statement:
    """A statement over the same iteration domain."""
    return replace(
        statement,
        target=target.tensor,
        subscripts=target.subscripts,
        reduction=reduction,
        initialize=False,
        value=value,
        required=(),
        distinct=(),
        origin=DerivedOrigin(reason, statement.origin),
    )


def _backwards(statement: Statement, numbers: Mapping[int, int]) -> Statement:
    """The statement in other blocks, whose steps run from the last to the first; ``numbers``: of these."""
    values: dict[str, Expression] = {}
    for steps in statement.sequence:
        last = Binary(BinaryOperator.SUBTRACT, steps.end, Literal(1, INDEX_TYPE), INDEX_TYPE)
        if steps.begin != Literal(0, INDEX_TYPE):
            last = Binary(BinaryOperator.ADD, steps.begin, last, INDEX_TYPE)
        step = Binary(BinaryOperator.SUBTRACT, last, IteratorReference(steps.name), INDEX_TYPE)
        # The bounds of inner loops are in terms of the steps around them.
        values[steps.name] = in_terms_of(step, {n: v for n, v in values.items() if n != steps.name})
    changed = map_statement(statement, lambda expression: in_terms_of(expression, values))
    return replace(changed, blocks=tuple(numbers[block] for block in statement.blocks))


def _moved_to(value: Expression, old: Expression, new: Expression) -> Expression:
    """The value with another adjoint in it."""
    return new if value == old else rebuild(value, lambda child: _moved_to(child, old, new))


def _scaled(place: Expression, extent: Expression) -> Expression:
    return place if is_number(place, 0) else Binary(BinaryOperator.MULTIPLY, place, extent, INDEX_TYPE)


def _is_static(guard: Expression) -> bool:
    """Whether a condition may stand in a ``where``: it has iterators and reads nothing."""
    return bool(iterators_in((fold_constants(guard),))) and not any(True for _ in reads_in(guard))


def ranged_iterators(conditions: Iterable[Expression]) -> frozenset[str]:
    """The iterators whose ranges read tensors."""
    return iterators_in(part.index for own in conditions for part in walk(own) if isinstance(part, InRange))


def _inside(subscript: Expression, guards: tuple[tuple[Expression, bool], ...]) -> Expression:
    """An index that data choose, and 0 where it is not read: there nothing checks it."""
    if not scatters(subscript):
        return subscript
    zero = Literal(0, INDEX_TYPE)
    chosen = [guard for guard in guards if not any(isinstance(part, InRange) for part in walk(guard[0]))]
    return reduce(lambda inner, guard: choice(_having(*guard), inner, zero), reversed(chosen), subscript)


def _having(condition: Expression, value: bool) -> Expression:
    match condition:
        case _ if value:
            return condition
        case Unary(UnaryOperator.NOT, negated):
            return negated
        case _:
            return Unary(UnaryOperator.NOT, condition, ScalarType.BOOL)
