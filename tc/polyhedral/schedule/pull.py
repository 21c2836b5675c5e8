"""From push form to pull form: reductions whose instances add to the same elements are counted by these.

``O(h+i) +=! I(h) * K(i)`` adds to each element from several instances, so that no loop over ``h`` is parallel, and no
sum stays in registers.  With ``u`` for ``h+i`` the same instances are ``O(u) +=! I(u-i) * K(i)``, where ``u-i`` is in
the range of ``h``.  Where instances slide by ``s`` elements, as in ``O(s*h+i)``, elements are ``s*u+r``: one phase for
each ``r``, to which the ``i = s*q+r`` add, for ``h = u-q`` (the sub-pixel form of a transposed convolution: Shi et al.,
*Is the deconvolution layer the same as a convolutional layer?*, arXiv 1609.07009).

This proposes; ``tc.polyhedral.proof.rewrites.verify_pulled`` says whether the instances are those of the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name
from tc.language.program.affine_form import affine_form
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Read,
    Statement,
    in_terms_of,
    iterators_in,
    reads_in,
)
from tc.language.program.specialization import Specialization
from tc.language.program.written_elements import is_scatter
from tc.polyhedral.ir.pulled import PulledStatement
from tc.polyhedral.schedule.join_terms import with_statement


def pull_reductions(specialization: Specialization) -> Iterator[tuple[Specialization, PulledStatement]]:
    """The program with one more reduction in pull form, as often as there is one."""
    for statement in specialization.program.statements:
        slides = _slides(statement)
        if slides:
            changed = _Pull(statement, slides).made()
            specialization = with_statement(specialization, changed.statement)
            yield specialization, PulledStatement(statement.name, changed.values)


@frozen
class _Slide:
    """A dimension whose subscript is ``step * own + sign * window + constant``; the iterators have constant ranges."""

    dimension: int
    own: IterationVariable
    window: IterationVariable
    step: int
    sign: int
    constant: int

    @property
    def elements(self) -> tuple[int, int]:
        """The first and the last one."""
        first, last = _ends(self.own)
        begin, end = sorted(self.sign * value for value in _ends(self.window))
        return self.step * first + begin + self.constant, self.step * last + end + self.constant


def _slides(statement: Statement) -> list[_Slide]:
    """The dimensions in which instances slide over the target; none where the statement has no pull form."""
    plain = statement.reduction is not None and not statement.blocks and not statement.counts and not statement.atomic
    if not plain or statement.owned is not None or is_scatter(statement):
        return []
    if any(read.tensor == statement.target for read in _reads(statement)):
        return []
    used = [name for subscript in statement.subscripts for name in iterators_in((subscript,))]
    found = list[_Slide]()
    for dimension, subscript in enumerate(statement.subscripts):
        if len(iterators_in((subscript,))) < 2:
            continue
        slide = _slide(dimension, subscript, {own.name: own for own in statement.iterators})
        if slide is None or used.count(slide.own.name) > 1 or used.count(slide.window.name) > 1:
            return []
        found.append(slide)
    return [slide for slide in found if _extent(slide.window) > slide.step]


def _reads(statement: Statement) -> Iterator[Read]:
    for part in (statement.value, *statement.subscripts, *statement.conditions):
        yield from reads_in(part)


def _slide(dimension: int, subscript: Expression, ranges: Mapping[str, IterationVariable]) -> _Slide | None:
    form = affine_form(subscript)
    terms = [(term.name, factor) for term, factor in form.factors.items() if isinstance(term, IteratorReference)]
    if len(terms) != 2 or len(form.factors) != 2:
        return None
    # The longer one is counted by elements where both could be.
    terms.sort(key=lambda term: (abs(term[1]), _extent(ranges[term[0]])), reverse=True)
    (own, step), (window, sign) = terms
    if step < 1 or abs(sign) != 1 or not all(map(_is_constant, (ranges[own], ranges[window]))):
        return None
    return _Slide(dimension, ranges[own], ranges[window], step, sign, form.constant)


def _is_constant(iterator: IterationVariable) -> bool:
    return isinstance(iterator.begin, Literal) and isinstance(iterator.end, Literal)


def _extent(iterator: IterationVariable) -> int:
    """How many values an iterator has; 0 where that is no number."""
    match iterator.begin, iterator.end:
        case Literal(begin), Literal(end):
            return int(end) - int(begin)
        case _:
            return 0


@frozen
class _Changed:
    statement: Statement
    values: Mapping[str, Expression]


@frozen
class _Dimension:
    """What stands for the two iterators of a slide: their values, and the subscript, in terms of the new ones."""

    iterators: tuple[IterationVariable, ...]
    values: Mapping[str, Expression]
    subscript: Expression


@frozen
class _Pull:
    statement: Statement
    slides: list[_Slide]

    def made(self) -> _Changed:
        statement, taken = self.statement, {own.name for own in self.statement.iterators}
        iterators: dict[str, tuple[IterationVariable, ...]] = {own.name: (own,) for own in statement.iterators}
        values: dict[str, Expression] = {}
        subscripts = list(statement.subscripts)
        ranges = list[Expression]()
        for slide in self.slides:
            found = _pulled(slide, taken)
            values |= found.values
            taken |= {own.name for own in found.iterators}
            iterators[slide.own.name], iterators[slide.window.name] = found.iterators[:1], found.iterators[1:]
            subscripts[slide.dimension] = found.subscript
            own = {iterator.name: iterator for iterator in found.iterators}
            for old in (slide.own, slide.window):
                ranges += _inside(found.values[old.name], *_ends(old), own)
            # What begins a sum has the conditions that are on its element alone.
            ranges += _inside(found.subscript, *slide.elements, own)
        changed = replace(
            statement,
            iterators=tuple(own for parts in iterators.values() for own in parts),
            conditions=(*(_condition(own, values) for own in statement.conditions), *ranges),
            subscripts=tuple(subscripts),
            value=in_terms_of(statement.value, values),
            required=tuple(_read(own, values) for own in statement.required),
            origin=DerivedOrigin("counted by the elements that it adds to", statement.origin),
        )
        return _Changed(
            changed, {own.name: values.get(own.name, IteratorReference(own.name)) for own in statement.iterators}
        )


def _read(read: Read, values: Mapping[str, Expression]) -> Read:
    return replace(read, subscripts=tuple(in_terms_of(own, values) for own in read.subscripts))


def _pulled(slide: _Slide, taken: set[str]) -> _Dimension:
    own, window, step = slide.own, slide.window, slide.step
    begin, end = sorted(slide.sign * value for value in _ends(window))
    least, most = slide.elements
    element = fresh_name(f"{own.name}{window.name}", taken)
    u = IteratorReference(element)
    if step == 1:
        value = _sum((u, 1), (IteratorReference(window.name), -slide.sign), constant=-slide.constant)
        return _Dimension(
            (_ranged(element, least, most), window), {own.name: value, window.name: IteratorReference(window.name)}, u
        )
    part, phase = fresh_name(f"{window.name}0", taken), fresh_name(f"{window.name}1", taken)
    q, r = IteratorReference(part), IteratorReference(phase)
    values = {
        own.name: _sum((u, 1), (q, -1)),
        window.name: _sum((q, slide.sign * step), (r, slide.sign), constant=-slide.sign * slide.constant),
    }
    iterators = (
        _ranged(element, least // step, most // step),
        _ranged(phase, 0, step - 1),
        _ranged(part, (begin + slide.constant) // step, (end + slide.constant) // step),
    )
    return _Dimension(iterators, values, _sum((u, step), (r, 1)))


def _ends(iterator: IterationVariable) -> tuple[int, int]:
    """The first and the last value."""
    assert isinstance(iterator.begin, Literal)
    assert isinstance(iterator.end, Literal)
    return int(iterator.begin.value), int(iterator.end.value) - 1


def _ranged(name: str, least: int, most: int) -> IterationVariable:
    return IterationVariable(name, Literal(least, INDEX_TYPE), Literal(most + 1, INDEX_TYPE))


def _sum(*terms: tuple[Expression, int], constant: int = 0) -> Expression:
    """The terms times their factors, and a constant."""
    total: Expression | None = None
    for term, factor in (*terms, *([(Literal(1, INDEX_TYPE), constant)] if constant else [])):
        size = abs(factor)
        if isinstance(term, Literal):
            value: Expression = Literal(size, INDEX_TYPE)
        else:
            value = term if size == 1 else Binary(BinaryOperator.MULTIPLY, Literal(size, INDEX_TYPE), term, INDEX_TYPE)
        if total is None:
            total = value if factor > 0 else Binary(BinaryOperator.SUBTRACT, Literal(0, INDEX_TYPE), value, INDEX_TYPE)
        else:
            operator = BinaryOperator.ADD if factor > 0 else BinaryOperator.SUBTRACT
            total = Binary(operator, total, value, INDEX_TYPE)
    assert total is not None
    return total


def _inside(value: Expression, first: int, last: int, ranges: Mapping[str, IterationVariable]) -> Iterator[Expression]:
    """That a value is between two others, as far as the ranges of iterators leave that open."""
    form = affine_form(value)
    corners = product(
        *(
            [factor * end for end in _ends(ranges[term.name])]
            for term, factor in form.factors.items()
            if isinstance(term, IteratorReference)
        )
    )
    reached = [form.constant + sum(corner) for corner in corners]
    if min(reached) < first:
        yield Binary(BinaryOperator.GREATER_EQUAL, value, Literal(first, INDEX_TYPE), ScalarType.BOOL)
    if max(reached) > last:
        yield Binary(BinaryOperator.LESS_EQUAL, value, Literal(last, INDEX_TYPE), ScalarType.BOOL)


def _condition(condition: Expression, values: Mapping[str, Expression]) -> Expression:
    """A condition in other terms, of which those that cancel out are gone."""
    changed = in_terms_of(condition, values)
    match changed:
        case Binary(_, left, right, ScalarType.BOOL) if left.type is right.type is INDEX_TYPE:
            return replace(changed, left=_collected(left), right=_collected(right))
        case _:
            return changed


def _collected(value: Expression) -> Expression:
    form = affine_form(value)
    if not form.factors:
        return Literal(form.constant, INDEX_TYPE)
    return _sum(*form.factors.items(), constant=form.constant)
