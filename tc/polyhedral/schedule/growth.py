"""Reductions whose terms grow from element to element: those of one are those of the one before, and some more.

``y(n,i) +=! x(n,j) where j in 0:i+1`` is the plainest of them.  What isl is asked: whether, along one of the written
iterators and in one of its two directions, the terms of every element contain those of its neighbour.  That the terms
have the same values there is plain where these do not depend on the iterator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import islpy as isl

from tc.base.types import ScalarType
from tc.grammar.syntax import UnaryOperator
from tc.language.isl.affine import frame_of, iteration_domain
from tc.language.program.program import Select, Statement, Unary, iterators_in, reads_in
from tc.language.program.specialization import Sizes
from tc.language.program.within import neutral_element
from tc.language.program.written_elements import written_iterators
from tc.language.prove.written import initialization


@dataclass(frozen=True)
class Growth:
    """How the terms of a statement grow along ``iterator``; ``backward``: from its greatest value to its least.

    ``elements``: ``{ [written iterators] }``, those that are written.  ``added``: ``{ [written] -> [reduced] }``, the
    terms that an element has and the one before has not.  ``later``: the elements that have one before them.
    """

    iterator: str
    backward: bool
    elements: isl.Set
    added: isl.Map
    later: isl.Set


def without_mask(statement: Statement) -> Statement:
    """The statement with a condition in the place of ``j <= i ? x(j) : 0``, where what is added else changes nothing.

    Conditions that say nothing of reduced iterators stay: they are of elements, all of which are initialized.
    """
    reduction, value = statement.reduction, statement.value
    reduced = {i.name for i in statement.iterators} - {i.name for i in written_iterators(statement)}
    if reduction is None or not isinstance(value, Select) or not iterators_in((value.condition,)) & reduced:
        return statement
    neutral = neutral_element(reduction, value.type)
    if value.otherwise == neutral:
        return replace(statement, conditions=(*statement.conditions, value.condition), value=value.then)
    if value.then == neutral:
        otherwise = Unary(UnaryOperator.NOT, value.condition, ScalarType.BOOL)
        return replace(statement, conditions=(*statement.conditions, otherwise), value=value.otherwise)
    return statement


def growth_of(statement: Statement, sizes: Sizes, context: isl.Context) -> Growth | None:
    """The growth of a reduction; None if it has none."""
    written = written_iterators(statement)
    steps = {iterator.name for iterator in statement.sequence}
    reduced = [i for i in statement.iterators if i not in written]
    if (
        statement.reduction is None
        or not reduced
        or any(r.tensor == statement.target for r in reads_in(statement.value))
    ):
        return None
    used = iterators_in((statement.value,))
    candidates = [position for position, i in enumerate(written) if i.name not in used and i.name not in steps]
    if not candidates:
        return None
    terms = _terms(statement, sizes, context)
    elements = _elements(statement, terms, sizes, context)
    if terms is None or elements is None:
        return None
    for position in candidates:
        following = _following(elements, position)
        for backward in (False, True):
            before = following if backward else following.reverse()
            had = before.apply_range(terms)
            if not had.is_subset(terms):
                continue
            added, later = terms.subtract(had), before.domain()
            if not added.intersect_domain(later).is_empty():
                return Growth(written[position].name, backward, elements, added.coalesce(), later.coalesce())
    return None


def _terms(statement: Statement, sizes: Sizes, context: isl.Context) -> isl.Map | None:
    """``{ [written] -> [reduced] }``: the terms of every element."""
    domain = iteration_domain(statement, frame_of(statement, context, sizes=sizes))
    if domain is None:
        return None
    written = {iterator.name for iterator in written_iterators(statement)}
    places = isl.Map.identity(domain.get_space().map_from_set()).intersect_domain(domain)
    for position in reversed(range(len(statement.iterators))):
        is_written = statement.iterators[position].name in written
        places = places.project_out(isl.dim_type.out if is_written else isl.dim_type.in_, position, 1)
    return places.reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)


def _elements(statement: Statement, terms: isl.Map | None, sizes: Sizes, context: isl.Context) -> isl.Set | None:
    """The elements that the statement gives a value, or, of an update, those that have terms."""
    if terms is None or not statement.initialize:
        return None if terms is None else terms.domain()
    given = initialization(statement)
    domain = iteration_domain(given, frame_of(given, context, sizes=sizes))
    return None if domain is None else domain.reset_tuple_id()


def _following(elements: isl.Set, position: int) -> isl.Map:
    """``{ [written] -> [written] }``: to the element with the next value of that iterator, and the same of others."""
    pairs = isl.Map.from_domain_and_range(elements, elements)
    for other in range(elements.dim(isl.dim_type.set)):
        if other != position:
            pairs = pairs.equate(isl.dim_type.in_, other, isl.dim_type.out, other)
    return pairs.order_lt(isl.dim_type.in_, position, isl.dim_type.out, position).lexmin()
