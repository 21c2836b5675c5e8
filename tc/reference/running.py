"""Reductions over the first or the last values of an iterator, up to where another one says: running totals.

``y(n,i) +=! x(n,j) where j in 0:i+1`` takes as many steps as there are terms, not as pairs of elements and terms: those
of a box are combined one after the other, and each element takes what they make up to its end.  That every element
has its own terms is plain: where it ends is computed for each.  Sums are taken in extended precision, as
blocks of terms are elsewhere, so that the oracle's own rounding does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tc.base.frozen import frozen
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Statement,
    iterators_in,
)
from tc.reference.access import (
    SubscriptForm,
    Window,
    extents,
    inside,
    linear_form,
    linear_forms,
    shifted,
    strided_view,
)
from tc.reference.bounded import Array, BoolArray
from tc.reference.expressions import ALWAYS, Frame, evaluate


@frozen
class Running:
    """Terms that are the same for all elements along ``growing``, which take the first or last of those ``along``.

    Both are positions of iterators.  ``frame``: of all terms, with one value of ``growing``.  ``values``: all that it
    has.  ``ends``: for each of these, where its terms along the other one end, or, from the back, begin.
    """

    frame: Frame
    growing: int
    along: int
    values: range
    ends: Array
    from_back: bool


@frozen
class RunningPlacement:
    """Where running totals of one box of terms go, in arrays of the target's shape; as ``Placement``."""

    running: Running
    frame: Frame
    forms: tuple[SubscriptForm, ...]
    mask: BoolArray

    def fold(self, operation: np.ufunc, array: Array, terms: Array, neutral: Array) -> None:
        """``array[subscripts] operation= terms`` for every instance; ``neutral`` changes nothing."""
        shape, along, growing = extents(self.frame.box), self.running.along, self.running.growing
        terms = np.broadcast_to(np.where(self.mask, terms, neutral), shape)
        kept = {position for form in self.forms for position in form.factors}
        others = tuple(p for p in range(len(shape)) if p not in kept and p != along)
        wide = np.longdouble if operation is np.add and array.dtype == np.float64 else array.dtype
        terms = operation.reduce(terms, axis=others, keepdims=True, dtype=wide)
        if self.running.from_back:
            terms = np.flip(terms, along)
        first = np.full_like(terms.take([0], along), neutral)
        totals = np.concatenate([first, operation.accumulate(terms, axis=along, dtype=wide)], along)
        taken = np.swapaxes(totals.take(self.counts(), along), along, growing)
        view = strided_view(array, self.forms, self.box, writeable=True)
        operation(view, taken.astype(array.dtype), out=view)

    @property
    def box(self) -> tuple[range, ...]:
        """That of the elements."""
        growing = self.running.growing
        return (*self.frame.box[:growing], self.running.values, *self.frame.box[growing + 1 :])

    def counts(self) -> Array:
        """How many of the box's terms each element takes."""
        interval = self.frame.box[self.running.along]
        found = interval.stop - self.running.ends if self.running.from_back else self.running.ends - interval.start
        counted: Array = np.clip(found, 0, len(interval))
        return counted


def running_placement(running: Running, frame: Frame, mask: BoolArray, window: Window) -> RunningPlacement | None:
    """Where the terms of the frame's box go; None where elements are not a strided view of the window."""
    forms = linear_forms(frame.statement.subscripts, frame.positions)
    if forms is None:
        return None
    forms = shifted(forms, window.origin)
    found = RunningPlacement(running, frame, forms, mask)
    used = [position for form in forms for position in form.factors]
    separable = len(used) == len(set(used)) and all(len(form.factors) <= 1 for form in forms)
    return found if separable and running.growing in used and inside(forms, window.shape, found.box) else None


def running(frame: Frame) -> Running | None:
    """The terms of the statement of a frame as running ones, if they are."""
    statement = frame.statement
    if statement.reduction is None or 0 in extents(frame.box):
        return None
    written = iterators_in(statement.subscripts)
    for growing in written - iterators_in((statement.value,)):
        for iterator in statement.iterators:
            if iterator.name not in written and growing in _mentioned(statement, iterator):
                return _running(frame, growing, iterator)
    return None


def _mentioned(statement: Statement, iterator: IterationVariable) -> frozenset[str]:
    """The iterators that decide which values one has."""
    conditions = [c for c in statement.conditions if iterator.name in iterators_in((c,))]
    return iterators_in((iterator.begin, iterator.end, *conditions))


def _running(frame: Frame, growing: str, along: IterationVariable) -> Running | None:
    statement = frame.statement
    own = next(iterator for iterator in statement.iterators if iterator.name == growing)
    others = [iterator for iterator in statement.iterators if iterator.name != along.name]
    kept = [condition for condition in statement.conditions if growing not in iterators_in((condition,))]
    tied = [condition for condition in statement.conditions if growing in iterators_in((condition,))]
    bounds = (bound for iterator in others for bound in (iterator.begin, iterator.end))
    if growing in iterators_in(bounds) or iterators_in((own.begin, own.end)):
        return None
    ends = [*_limits(frame, along, growing, tied)]
    if not ends or None in ends:
        return None
    limits = [limit for limit in ends if limit is not None]
    from_back = {limit.begins for limit in limits}
    if len(from_back) > 1:
        return None
    place, position = frame.positions[growing], frame.positions[along.name]
    values = [evaluate(limit.at, frame, ALWAYS).value for limit in limits]
    every = [np.broadcast_to(value.reshape(-1), len(frame.box[place])) for value in values]
    combined = np.max(every, axis=0) if limits[0].begins else np.min(every, axis=0)
    interval = frame.box[position]
    hull = replace(along, begin=Literal(interval.start, INDEX_TYPE), end=Literal(interval.stop, INDEX_TYPE))
    iterators = tuple(hull if iterator is along else iterator for iterator in statement.iterators)
    changed = replace(statement, iterators=iterators, conditions=tuple(kept))
    single = (*frame.box[:place], frame.box[place][:1], *frame.box[place + 1 :])
    terms = replace(frame, statement=changed, box=single)
    return Running(terms, place, position, frame.box[place], combined, limits[0].begins)


@frozen
class _Limit:
    """``at``: the first value that is no longer, or, where terms begin there, the first that is."""

    at: Expression
    begins: bool


def _limits(
    frame: Frame, along: IterationVariable, growing: str, conditions: list[Expression]
) -> Iterator[_Limit | None]:
    """Where the terms begin or end, as far as that depends on the iterator called ``growing``; None for other ties."""
    for bound, begins in ((along.begin, True), (along.end, False)):
        used = iterators_in((bound,))
        if used == {growing}:
            yield _Limit(bound, begins)
        elif used:
            yield None
    for condition in conditions:
        yield _limit_of(frame, along.name, growing, condition)


_AT_MOST = frozenset({BinaryOperator.LESS, BinaryOperator.LESS_EQUAL})
_AT_LEAST = frozenset({BinaryOperator.GREATER, BinaryOperator.GREATER_EQUAL})


def _limit_of(frame: Frame, along: str, growing: str, condition: Expression) -> _Limit | None:
    """``j < i + 1`` and the like, on one side or the other."""
    match condition:
        case Binary(operator, left, right) if operator in _AT_MOST | _AT_LEAST:
            pass
        case _:
            return None
    first, second = linear_form(left, frame.positions), linear_form(right, frame.positions)
    if first is None or second is None:
        return None
    difference = first.plus(second.times(-1))
    place, position = frame.positions[growing], frame.positions[along]
    if set(difference.factors) != {place, position} or abs(difference.factors[position]) != 1:
        return None
    # ``sign * j - sign * factor * i + constant`` is compared with 0.
    sign, factor = difference.factors[position], -difference.factors[position] * difference.factors[place]
    below = (operator in _AT_MOST) == (sign > 0)
    bound = Binary(
        BinaryOperator.ADD,
        Binary(BinaryOperator.MULTIPLY, Literal(factor, INDEX_TYPE), IteratorReference(growing), INDEX_TYPE),
        Literal(-sign * difference.constant, INDEX_TYPE),
        INDEX_TYPE,
    )
    strict = operator in (BinaryOperator.LESS, BinaryOperator.GREATER)
    more = int(below != strict)
    return _Limit(Binary(BinaryOperator.ADD, bound, Literal(more, INDEX_TYPE), INDEX_TYPE), not below)
